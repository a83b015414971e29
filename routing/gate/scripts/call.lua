-- Shared prelude of every script: the plan (ARGV[1], the same for all calls of a binding), this call (ARGV[2]), the
-- clock, and the liveness of the process that calls.
-- `call.now` is 0 for the clock of this Redis, the only one that all workers share; tests set a time.
local PREFIX = 'rb:gate2:'
local DAY_MS = 86400000

local plan = cjson.decode(ARGV[1])
local call = cjson.decode(ARGV[2])

local function clock()
  if call.now > 0 then return call.now end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local now = clock()
local this_call = call.holder .. ':' .. call.id

-- Lua would write a large number as 1.7e+12.
local function integer(number) return string.format('%.0f', number) end

local function liveness_key(holder) return PREFIX .. 'liveness:' .. holder end

-- A process that holds a place or a probe is alive as long as its liveness key exists; it has to renew the key.
local function renew_liveness() redis.call('SET', liveness_key(call.holder), 1, 'PX', integer(call.lost_ms)) end

local function is_alive(holder) return redis.call('EXISTS', liveness_key(holder)) == 1 end

local function holder_of(member) return string.match(member, '^[^:]+') end
