-- Admit a call: reserve all rules of its policy and take one key, or change nothing.
--   {'admitted', index, is_probe, now, all_closed}
--   {'limit', wait_ms, concurrency_limit}   the policy's rate limit is reached
--   {'no_key', wait_ms, reason}             no key may be used; `reason` as of `choose_key`
local wait, concurrency_limit = wait_for_rules(plan.rules)
if wait > 0 then return {'limit', wait, concurrency_limit} end
local index, is_probe_or_wait, reason = choose_key({})
if not index then return {'no_key', is_probe_or_wait, reason} end
reserve_rules(plan.rules)
take_key(index, is_probe_or_wait)
return {'admitted', index, is_probe_or_wait and 1 or 0, now, all_closed()}
