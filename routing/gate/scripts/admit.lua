-- A call sets out: all rules of its policy and one key, or nothing.
--   {'admitted', index, is probe, now} | {'limit', milliseconds, calls at once} | {'closed', milliseconds, why}
local wait, at_once = wait_for(plan.rules)
if wait > 0 then return {'limit', wait, at_once} end
local index, second, why = choose({})
if not index then return {'closed', second, why} end
reserve(plan.rules)
take(index, second)
return {'admitted', index, second and 1 or 0, now}
