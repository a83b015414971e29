-- A call leaves its key and, when it ends, its policy's limits.
--   {'none', milliseconds, others, opened}, as of `move`
local opened = call.left and leave(call.left, call.charges) or 0
if call.ends then release(plan.rules, call.sent, call.at, call.charges) end
local wait, others = outlook()
return {'none', wait, others, opened}
