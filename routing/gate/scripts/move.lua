-- A call that was admitted leaves a key (unless it left the last one's host) and takes another.
--   {'admitted', index, is probe, now, opened} | {'none', milliseconds, others, opened}
-- `opened`: for how many milliseconds the breaker of the key that was left opened; 0: it did not.
local opened = call.left and leave(call.left, {}) or 0
local index, is_probe = choose(call.tried)
if not index then
  local wait, others = outlook()
  return {'none', wait, others, opened}
end
take(index, is_probe)
return {'admitted', index, is_probe and 1 or 0, now, opened}
