-- Rate limits. A rule has `key`, `meter`, `amount`, `window` (milliseconds) and `strategy`. A strategy has
--   wait(rule)        milliseconds until the rule admits a call; 0: now. Changes no count
--   add(rule, count)  counts a call, or the tokens of its response
--   refund(rule, at)  uncounts the call that was counted at that time
-- A script calls `wait` for all rules before it calls `add` for any, so that a call reserves all of them or none.

local strategies = {}

-- A denied call is retried once a tenth of the amount is free, so that waiting calls do not wake for one place each.
local function refill_step(rule) return math.max(1, math.floor(rule.amount / 10)) end

-- Fixed window: one counter for each window, aligned to the epoch.
local function window_key(rule, at) return rule.key .. ':' .. integer(math.floor(at / rule.window)) end

strategies['fixed-window'] = {
  wait = function(rule)
    local used = tonumber(redis.call('GET', window_key(rule, now)) or '0')
    if used < rule.amount then return 0 end
    return rule.window - now % rule.window
  end,
  add = function(rule, count)
    local key = window_key(rule, now)
    redis.call('INCRBY', key, integer(count))
    redis.call('PEXPIRE', key, integer(rule.window))
  end,
  refund = function(rule, at)
    local key = window_key(rule, at)
    if tonumber(redis.call('GET', key) or '0') > 0 then redis.call('DECR', key) end
  end,
}

-- Sliding window, exact: one entry for each call, or for each call's tokens, whose number follows the last colon.
-- Expired entries are evicted a few with each addition, and as many as needed when the window looks full.
local EVICT_ON_ADD, EVICT_WHEN_FULL = 10, 100

local function sum_key(rule) return rule.key .. ':sum' end

local function counted(rule)
  local entries = redis.call('ZCARD', rule.key)
  if rule.meter == 'requests' or entries == 0 then return entries end
  return tonumber(redis.call('GET', sum_key(rule)) or '0')
end

local function tokens_of(entry) return tonumber(string.match(entry, '(%d+)$')) end

-- Evict up to `limit` expired entries. Returns whether there was one.
local function evict_expired(rule, limit)
  local expired_at = integer(now - rule.window)
  local expired = redis.call('ZRANGEBYSCORE', rule.key, '-inf', expired_at, 'LIMIT', 0, limit)
  if #expired == 0 then return false end
  redis.call('ZREM', rule.key, unpack(expired))
  if rule.meter ~= 'requests' then
    local sum = 0
    for _, entry in ipairs(expired) do sum = sum + tokens_of(entry) end
    redis.call('DECRBY', sum_key(rule), integer(sum))
  end
  return true
end

-- The time of the entry with which the oldest ones sum up to `excess`. Only the first 1000 entries are read: with more,
-- the time may be too early.
local function time_of_excess(rule, excess)
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
    while total >= rule.amount and evict_expired(rule, EVICT_WHEN_FULL) do total = counted(rule) end
    if total < rule.amount then return 0 end
    return math.max(1, time_of_excess(rule, total - rule.amount + refill_step(rule)) + rule.window - now)
  end,
  add = function(rule, count)
    evict_expired(rule, EVICT_ON_ADD)
    if rule.meter == 'requests' then
      redis.call('ZADD', rule.key, integer(now), call.id)
    else
      if redis.call('ZCARD', rule.key) == 0 then redis.call('DEL', sum_key(rule)) end
      redis.call('ZADD', rule.key, integer(now), call.id .. ':' .. integer(count))
      redis.call('INCRBY', sum_key(rule), integer(count))
      redis.call('PEXPIRE', sum_key(rule), integer(rule.window))
    end
    redis.call('PEXPIRE', rule.key, integer(rule.window))
  end,
  refund = function(rule) redis.call('ZREM', rule.key, call.id) end,
}

-- Token bucket. The level is stored in units of 1/window of a request or token: the bucket refills by `amount` units a
-- millisecond, and all arithmetic is on integers. A missing bucket is full.
local function level_of(rule)
  local saved = redis.call('HMGET', rule.key, 'level', 'at')
  local capacity = rule.amount * rule.window
  if not saved[1] or not saved[2] then return capacity end
  return math.min(capacity, tonumber(saved[1]) + math.max(0, now - tonumber(saved[2])) * rule.amount)
end

local function add_level(rule, count)
  local capacity = rule.amount * rule.window
  local level = math.min(capacity, level_of(rule) + count * rule.window)
  redis.call('HSET', rule.key, 'level', integer(level), 'at', integer(now))
  redis.call('PEXPIRE', rule.key, integer(math.ceil((capacity - level) / rule.amount) + 1000))
end

strategies['token-bucket'] = {
  wait = function(rule)
    local level = level_of(rule)
    local needed = rule.meter == 'requests' and rule.window or 1
    if level >= needed then return 0 end
    return math.max(1, math.ceil((math.max(needed, refill_step(rule) * rule.window) - level) / rule.amount))
  end,
  add = function(rule, count) add_level(rule, -count) end,
  refund = function(rule) add_level(rule, 1) end,
}

-- Concurrency: one entry for each running call, scored by the end of its lease. When it looks full, entries are removed
-- whose lease is over or whose process is lost. When the next call ends is unknown: the wait is a guess.
local CONCURRENCY_RETRY_MS = 250

local function remove_lost(rule)
  redis.call('ZREMRANGEBYSCORE', rule.key, '-inf', integer(now))
  local alive = {}
  for _, member in ipairs(redis.call('ZRANGE', rule.key, 0, -1)) do
    local holder = holder_of(member)
    if alive[holder] == nil then alive[holder] = is_alive(holder) end
    if not alive[holder] then redis.call('ZREM', rule.key, member) end
  end
end

strategies['concurrency'] = {
  wait = function(rule)
    if redis.call('ZCARD', rule.key) < rule.amount then return 0 end
    remove_lost(rule)
    if redis.call('ZCARD', rule.key) < rule.amount then return 0 end
    return CONCURRENCY_RETRY_MS
  end,
  add = function(rule)
    redis.call('ZADD', rule.key, integer(now + call.lease_ms), this_call)
    if redis.call('PTTL', rule.key) < call.lease_ms then redis.call('PEXPIRE', rule.key, integer(call.lease_ms)) end
    renew_liveness()
  end,
}

-- Returns the longest wait; and, when only concurrency denies the call, how many calls may run at once (else 0).
local function wait_for_rules(rules)
  local longest, concurrency_limit, others = 0, 0, false
  for _, rule in ipairs(rules) do
    local wait = strategies[rule.strategy].wait(rule)
    longest = math.max(longest, wait)
    if wait > 0 and rule.meter == 'concurrency' then
      concurrency_limit = rule.amount
    else
      others = others or wait > 0
    end
  end
  return longest, others and 0 or concurrency_limit
end

-- Tokens are not reserved: their number is known only after the response.
local function reserve_rules(rules)
  for _, rule in ipairs(rules) do
    if rule.meter == 'requests' or rule.meter == 'concurrency' then strategies[rule.strategy].add(rule, 1) end
  end
end

-- After the call: concurrency is released, tokens are charged, and a request that was not sent is refunded.
local function release_rules(rules, sent, at, charges)
  for _, rule in ipairs(rules) do
    if rule.meter == 'concurrency' then
      redis.call('ZREM', rule.key, this_call)
    elseif rule.meter ~= 'requests' then
      local tokens = charges[rule.meter] or 0
      if tokens > 0 then strategies[rule.strategy].add(rule, tokens) end
    elseif not sent then
      strategies[rule.strategy].refund(rule, at)
    end
  end
end
