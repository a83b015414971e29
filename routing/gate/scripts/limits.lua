-- Rate limits. A rule has `key`, `meter`, `amount`, `window` (milliseconds) and `strategy`. A strategy has
--   wait(rule)          milliseconds until the rule lets a call through; 0: now
--   add(rule, count)    counts a call, or tokens after their answer
--   give_back(rule, at) takes back the call that was counted at that time
-- and changes nothing that counts before `add`: all rules are asked first, then all are taken, or none.

local strategies = {}

-- A refused call comes back when a tenth of the amount is free, so that those who wait don't wake for one each.
local function step(rule) return math.max(1, math.floor(rule.amount / 10)) end

-- Fixed window: a counter for each window since the epoch.
local function window_key(rule, at) return rule.key .. ':' .. whole(math.floor(at / rule.window)) end

strategies['fixed-window'] = {
  wait = function(rule)
    local used = tonumber(redis.call('GET', window_key(rule, now)) or '0')
    if used < rule.amount then return 0 end
    return rule.window - now % rule.window
  end,
  add = function(rule, count)
    local key = window_key(rule, now)
    redis.call('INCRBY', key, whole(count))
    redis.call('PEXPIRE', key, whole(rule.window))
  end,
  give_back = function(rule, at)
    local key = window_key(rule, at)
    if tonumber(redis.call('GET', key) or '0') > 0 then redis.call('DECR', key) end
  end,
}

-- Sliding window, exact: an entry for each call, or for each call's tokens with their number behind the last colon.
-- Entries beyond the window go a few with each addition, and as many as it takes when the window looks full.
local FEW, MANY = 10, 100

local function sum_key(rule) return rule.key .. ':sum' end

local function counted(rule)
  local entries = redis.call('ZCARD', rule.key)
  if rule.meter == 'requests' or entries == 0 then return entries end
  return tonumber(redis.call('GET', sum_key(rule)) or '0')
end

local function tokens_of(entry) return tonumber(string.match(entry, '(%d+)$')) end

local function evicted(rule, most)
  local border = whole(now - rule.window)
  local old = redis.call('ZRANGEBYSCORE', rule.key, '-inf', border, 'LIMIT', 0, most)
  if #old == 0 then return false end
  redis.call('ZREM', rule.key, unpack(old))
  if rule.meter ~= 'requests' then
    local sum = 0
    for _, entry in ipairs(old) do sum = sum + tokens_of(entry) end
    redis.call('DECRBY', sum_key(rule), whole(sum))
  end
  return true
end

-- When the oldest entries that make `excess` together leave the window; of very many entries, an earlier time.
local function leaving(rule, excess)
  if rule.meter == 'requests' then
    local entry = redis.call('ZRANGE', rule.key, excess - 1, excess - 1, 'WITHSCORES')
    return entry[2] and tonumber(entry[2]) or now
  end
  local entries = redis.call('ZRANGE', rule.key, 0, 999, 'WITHSCORES')
  local sum, at = 0, now
  for index = 1, #entries, 2 do
    sum, at = sum + tokens_of(entries[index]), tonumber(entries[index + 1])
    if sum >= excess then break end
  end
  return at
end

strategies['sliding-window'] = {
  wait = function(rule)
    local total = counted(rule)
    while total >= rule.amount and evicted(rule, MANY) do total = counted(rule) end
    if total < rule.amount then return 0 end
    return math.max(1, leaving(rule, total - rule.amount + step(rule)) + rule.window - now)
  end,
  add = function(rule, count)
    evicted(rule, FEW)
    if rule.meter == 'requests' then
      redis.call('ZADD', rule.key, whole(now), call.id)
    else
      if redis.call('ZCARD', rule.key) == 0 then redis.call('DEL', sum_key(rule)) end
      redis.call('ZADD', rule.key, whole(now), call.id .. ':' .. whole(count))
      redis.call('INCRBY', sum_key(rule), whole(count))
      redis.call('PEXPIRE', sum_key(rule), whole(rule.window))
    end
    redis.call('PEXPIRE', rule.key, whole(rule.window))
  end,
  give_back = function(rule) redis.call('ZREM', rule.key, call.id) end,
}

-- Token bucket. The level is kept in units of 1/window of a request or token, so that refilling is `amount` units a
-- millisecond and all arithmetic is of integers. A bucket that is not there is full.
local function level_of(rule)
  local saved = redis.call('HMGET', rule.key, 'level', 'at')
  local capacity = rule.amount * rule.window
  if not saved[1] or not saved[2] then return capacity end
  return math.min(capacity, tonumber(saved[1]) + math.max(0, now - tonumber(saved[2])) * rule.amount)
end

local function pour(rule, count)
  local capacity = rule.amount * rule.window
  local level = math.min(capacity, level_of(rule) + count * rule.window)
  redis.call('HSET', rule.key, 'level', whole(level), 'at', whole(now))
  redis.call('PEXPIRE', rule.key, whole(math.ceil((capacity - level) / rule.amount) + 1000))
end

strategies['token-bucket'] = {
  wait = function(rule)
    local level = level_of(rule)
    local needed = rule.meter == 'requests' and rule.window or 1
    if level >= needed then return 0 end
    return math.max(1, math.ceil((math.max(needed, step(rule) * rule.window) - level) / rule.amount))
  end,
  add = function(rule, count) pour(rule, -count) end,
  give_back = function(rule) pour(rule, 1) end,
}

-- Concurrency: an entry for each running call, with the end of its lease. When it looks full, entries go whose lease
-- is over or whose process is dead. Nobody knows when the next call ends: the wait is a guess.
local CROWDED = 250

local function drop_the_dead(rule)
  redis.call('ZREMRANGEBYSCORE', rule.key, '-inf', whole(now))
  local alive = {}
  for _, member in ipairs(redis.call('ZRANGE', rule.key, 0, -1)) do
    local holder = holder_of(member)
    if alive[holder] == nil then alive[holder] = is_present(holder) end
    if not alive[holder] then redis.call('ZREM', rule.key, member) end
  end
end

strategies['concurrency'] = {
  wait = function(rule)
    if redis.call('ZCARD', rule.key) < rule.amount then return 0 end
    drop_the_dead(rule)
    if redis.call('ZCARD', rule.key) < rule.amount then return 0 end
    return CROWDED
  end,
  add = function(rule)
    redis.call('ZADD', rule.key, whole(now + call.lease), me)
    if redis.call('PTTL', rule.key) < call.lease then redis.call('PEXPIRE', rule.key, whole(call.lease)) end
    say_present()
  end,
}

-- The longest wait; and, when nothing but concurrency refuses, how many calls it lets run at once (else 0).
local function wait_for(rules)
  local longest, at_once, others = 0, 0, false
  for _, rule in ipairs(rules) do
    local wait = strategies[rule.strategy].wait(rule)
    longest = math.max(longest, wait)
    if wait > 0 and rule.meter == 'concurrency' then at_once = rule.amount else others = others or wait > 0 end
  end
  return longest, others and 0 or at_once
end

local function reserve(rules)
  for _, rule in ipairs(rules) do
    if rule.meter == 'requests' or rule.meter == 'concurrency' then strategies[rule.strategy].add(rule, 1) end
  end
end

-- After the call: concurrency is released, tokens are charged, and what was not sent is given back.
local function release(rules, sent, at, charges)
  for _, rule in ipairs(rules) do
    if rule.meter == 'concurrency' then
      redis.call('ZREM', rule.key, me)
    elseif rule.meter ~= 'requests' then
      local tokens = charges[rule.meter] or 0
      if tokens > 0 then strategies[rule.strategy].add(rule, tokens) end
    elseif not sent then
      strategies[rule.strategy].give_back(rule, at)
    end
  end
end
