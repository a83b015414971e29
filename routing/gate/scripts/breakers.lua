-- Circuit breakers, one for each value of a host key. No hash: closed. With a hash: open until `until`, then half-open.
--   until                        milliseconds since the epoch
--   kind                         the signal that opened it: `unauthorized` (401), `error` (403, 5xx, network) or
--                                `throttled` (429 with a Retry-After)
--   status, at, failures         of the last failure, and how many failures came in a row
--   unauthorized, error          how many rungs of each ladder were climbed
--   probe, probe_at, probe_until the call that tests the key while it is half-open, and the end of its lease

local LADDERS_MS = {
  unauthorized = {60000, 300000, 900000, 3600000},
  error = {2000, 4000, 8000, 16000, 32000, 60000},
}

local function breaker_key(key) return PREFIX .. 'breaker:' .. key.breaker end

-- Returns nil when a call may pass, and whether it is the probe; else the milliseconds to wait, and the kind.
local function wait_for_breaker(key)
  local found = redis.call('HMGET', breaker_key(key), 'until', 'kind', 'probe', 'probe_at', 'probe_until')
  if not found[1] then return nil, false end
  local open_until = tonumber(found[1])
  if now < open_until then return open_until - now, found[2] end
  local probe = found[3]
  if not probe or now >= tonumber(found[5]) or not is_alive(holder_of(probe)) then return nil, true end
  -- A probe soon shows whether the key works. The longer it takes, the less often the other calls retry.
  return math.min(5000, math.max(500, now - tonumber(found[4]))), found[2]
end

local function begin_probe(key)
  redis.call('HSET', breaker_key(key), 'probe', this_call, 'probe_at', integer(now),
    'probe_until', integer(now + call.lease_ms))
  renew_liveness()
end

-- Climb one rung of the ladder of this kind. Returns its milliseconds; nil for `throttled`, which has no ladder.
local function ladder(breaker, kind)
  local rungs = LADDERS_MS[kind]
  if not rungs then return nil end
  local rung = redis.call('HINCRBY', breaker, kind, 1)
  return rungs[math.min(rung, #rungs)]
end

-- Returns for how many milliseconds the breaker is open.
local function open_breaker(key, signal)
  local breaker = breaker_key(key)
  local milliseconds = ladder(breaker, signal.kind) or signal.milliseconds
  redis.call('HINCRBY', breaker, 'failures', 1)
  redis.call('HSET', breaker, 'until', integer(now + milliseconds), 'kind', signal.kind, 'status', signal.status,
    'at', integer(now))
  redis.call('HDEL', breaker, 'probe', 'probe_at', 'probe_until')
  -- The rungs are remembered for a day after the breaker has become half-open.
  redis.call('PEXPIRE', breaker, integer(milliseconds + DAY_MS))
  return milliseconds
end

-- Returns for how many milliseconds this signal opened the breaker; 0: it did not.
-- Of several calls that were running when the key failed, only the first climbs a rung. Nor does a success of one of
-- them close the breaker: only the probe's does.
local function record_signal(key, signal)
  local breaker = breaker_key(key)
  local found = redis.call('HMGET', breaker, 'until', 'kind', 'probe')
  local is_probe = found[3] == this_call
  if signal.kind == 'ok' then
    if is_probe then redis.call('DEL', breaker) end
  elseif signal.kind == 'none' then
    if is_probe then redis.call('HDEL', breaker, 'probe', 'probe_at', 'probe_until') end
  elseif not found[1] or is_probe or (signal.kind == 'unauthorized' and found[2] ~= 'unauthorized') then
    return open_breaker(key, signal)
  elseif signal.kind == 'throttled' and now + signal.milliseconds > tonumber(found[1]) then
    redis.call('HSET', breaker, 'until', integer(now + signal.milliseconds))
    redis.call('PEXPIRE', breaker, integer(signal.milliseconds + DAY_MS))
  end
  return 0
end
