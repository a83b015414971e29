-- What every script begins with: the plan (the same for all calls of a binding), this call, the clock, who calls.
-- `call.now` is 0 for the clock of this Redis, the only one that all workers share; tests name a time.
local PREFIX = 'rb:gate:'
local DAY = 86400000

local plan = cjson.decode(ARGV[1])
local call = cjson.decode(ARGV[2])

local function clock()
  if call.now > 0 then return call.now end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local now = clock()
local me = call.holder .. ':' .. call.id

-- Lua writes large numbers as 1.7e+12 when it makes text of them.
local function whole(number) return string.format('%.0f', number) end

local function presence(holder) return PREFIX .. 'present:' .. holder end

-- A process that holds something here says so by a key that it renews; without the key it is dead.
local function say_present() redis.call('SET', presence(call.holder), 1, 'PX', whole(call.lost)) end

local function is_present(holder) return redis.call('EXISTS', presence(holder)) == 1 end

local function holder_of(member) return string.match(member, '^[^:]+') end
