-- Circuit breakers, one for each value of a key. No hash: closed. A hash is open until `until`, then half-open.
--   until                   milliseconds since the epoch
--   kind                    why: `refused` (401), `trouble` (403, 5xx, network), `busy` (429 with a Retry-After)
--   status, at, failures    of the last failure, and how many there were in a row
--   refused, trouble        how high each ladder was climbed
--   probe, probe_at, probe_until    the call that tries the key while it is half-open, and the end of its lease

local LADDERS = {
  refused = {60000, 300000, 900000, 3600000},
  trouble = {2000, 4000, 8000, 16000, 32000, 60000},
}

local function breaker_key(key) return PREFIX .. 'breaker:' .. key.breaker end

-- nil when a call may pass (and whether as the probe), else milliseconds to wait and the kind.
local function shut(key)
  local found = redis.call('HMGET', breaker_key(key), 'until', 'kind', 'probe', 'probe_at', 'probe_until')
  if not found[1] then return nil, false end
  local opens = tonumber(found[1])
  if now < opens then return opens - now, found[2] end
  local probe = found[3]
  if not probe or now >= tonumber(found[5]) or not is_present(holder_of(probe)) then return nil, true end
  -- The probe says soon how the key is; whoever waits for a slow one asks less and less often.
  return math.min(5000, math.max(500, now - tonumber(found[4]))), found[2]
end

local function begin_probe(key)
  redis.call('HSET', breaker_key(key), 'probe', me, 'probe_at', whole(now), 'probe_until', whole(now + call.lease))
  say_present()
end

-- For how many milliseconds.
local function open(key, verdict)
  local breaker = breaker_key(key)
  local milliseconds = verdict.milliseconds
  local ladder = LADDERS[verdict.kind]
  if ladder then
    local rung = redis.call('HINCRBY', breaker, verdict.kind, 1)
    milliseconds = ladder[math.min(rung, #ladder)]
  end
  redis.call('HINCRBY', breaker, 'failures', 1)
  redis.call('HSET', breaker, 'until', whole(now + milliseconds), 'kind', verdict.kind, 'status', verdict.status,
    'at', whole(now))
  redis.call('HDEL', breaker, 'probe', 'probe_at', 'probe_until')
  redis.call('PEXPIRE', breaker, whole(milliseconds + DAY))
  return milliseconds
end

-- For how many milliseconds this opened the breaker; 0: it did not. Of the calls that were under way together when a
-- key broke, the first opens it: the others are no further rungs. Nor does one of them close it by a success: that is
-- for the probe.
local function record(key, verdict)
  local breaker = breaker_key(key)
  local found = redis.call('HMGET', breaker, 'until', 'kind', 'probe')
  local is_probe = found[3] == me
  if verdict.kind == 'good' then
    if is_probe then redis.call('DEL', breaker) end
  elseif verdict.kind == 'none' then
    if is_probe then redis.call('HDEL', breaker, 'probe', 'probe_at', 'probe_until') end
  elseif not found[1] or is_probe or (verdict.kind == 'refused' and found[2] ~= 'refused') then
    return open(key, verdict)
  elseif verdict.kind == 'busy' and now + verdict.milliseconds > tonumber(found[1]) then
    redis.call('HSET', breaker, 'until', whole(now + verdict.milliseconds))
    redis.call('PEXPIRE', breaker, whole(verdict.milliseconds + DAY))
  end
  return 0
end
