-- A call that was admitted leaves a key (unless it left the last one's host) and takes another.
--   {'admitted', index, is probe, now} | {'none'}
if call.left then leave(call.left, {}) end
local index, is_probe = choose(call.tried)
if not index then return {'none'} end
take(index, is_probe)
return {'admitted', index, is_probe and 1 or 0, now}
