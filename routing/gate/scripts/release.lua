-- Release a call's key and, when the call ends, its policy's limits.
--   {'released', wait_ms, has_other_keys, opened_ms}   as of `next_key`
local opened_ms = call.released and release_key(call.released, call.charges) or 0
if call.ends then release_rules(plan.rules, call.sent, call.admitted_at, call.charges) end
local wait, has_other_keys = other_keys()
return {'released', wait, has_other_keys, opened_ms}
