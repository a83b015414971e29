-- An admitted call moves to another key of its binding, and releases the one that it holds (it holds none when it
-- comes from a binding whose host could not be reached).
--   {'admitted', index, is_probe, now, opened_ms} | {'no_key', wait_ms, has_other_keys, opened_ms}
-- `opened_ms`: for how long the breaker of the released key opened; 0: it did not.
local opened_ms = call.released and release_key(call.released, {}) or 0
local index, is_probe = choose_key(call.tried)
if not index then
  local wait, has_other_keys = other_keys()
  return {'no_key', wait, has_other_keys, opened_ms}
end
take_key(index, is_probe)
return {'admitted', index, is_probe and 1 or 0, now, opened_ms}
