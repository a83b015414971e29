-- Choosing among the plan's keys, taking one and releasing it.

local pickers = {}

-- In the plan's order.
pickers['prioritized'] = {
  order = function(indexes) return indexes end,
  note_use = function() end,
}

-- In the plan's order, beginning after the key that was used last.
pickers['round-robin'] = {
  order = function(indexes)
    local last = redis.call('GET', plan.turn)
    local rotated, after = {}, 0
    for index, key in ipairs(plan.keys) do
      if key.id == last then after = index end
    end
    for offset = 1, #indexes do rotated[offset] = (after + offset - 1) % #indexes + 1 end
    return rotated
  end,
  note_use = function(key) redis.call('SET', plan.turn, key.id, 'PX', DAY_MS) end,
}

-- By a number that rises with each use; keys that were never used come first, in the plan's order.
pickers['least-recently-used'] = {
  order = function(indexes)
    local ids = {}
    for index, key in ipairs(plan.keys) do ids[index] = key.id end
    local used = redis.call('HMGET', plan.turn, unpack(ids))
    table.sort(indexes, function(one, other)
      local first, second = tonumber(used[one] or 0), tonumber(used[other] or 0)
      if first == second then return one < other end
      return first < second
    end)
    return indexes
  end,
  note_use = function(key)
    redis.call('HSET', plan.turn, key.id, redis.call('HINCRBY', plan.turn, 'uses', 1))
    redis.call('PEXPIRE', plan.turn, DAY_MS)
  end,
}

local picker = pickers[#plan.keys > 1 and plan.selection or 'prioritized']

-- Returns the index of a usable key and whether this call is its probe; or nil, the milliseconds until a key may be
-- usable, and the reason: `error` (an open breaker), `limit`, or `unauthorized` when every key was rejected with 401.
local function choose_key(tried)
  local skip, indexes = {}, {}
  for _, index in ipairs(tried) do skip[index] = true end
  for index in ipairs(plan.keys) do indexes[index] = index end
  local soonest = {}
  for _, index in ipairs(picker.order(indexes)) do
    if not skip[index] then
      local key = plan.keys[index]
      local wait, reason = wait_for_breaker(key)
      if not wait then
        local is_probe = reason
        wait, reason = wait_for_rules(key.rules), 'limit'
        if wait == 0 then return index, is_probe end
      end
      if reason == 'throttled' then reason = 'error' end
      soonest[reason] = math.min(soonest[reason] or wait, wait)
    end
  end
  local reason = soonest.error and 'error' or soonest.limit and 'limit' or 'unauthorized'
  local wait = math.min(soonest.error or soonest.limit or soonest.unauthorized or 0, soonest.limit or math.huge)
  return nil, wait, reason
end

-- 1 when the breaker of every key is closed, else 0.
local function all_closed()
  for _, key in ipairs(plan.keys) do
    if redis.call('EXISTS', breaker_key(key)) == 1 then return 0 end
  end
  return 1
end

local function take_key(index, is_probe)
  local key = plan.keys[index]
  picker.note_use(key)
  reserve_rules(key.rules)
  if is_probe then begin_probe(key) end
end

-- `released`: the key's index, the signal of its response, whether a request was sent with it, and since when it was
-- held. Returns for how many milliseconds its breaker opened; 0: it did not.
local function release_key(released, charges)
  local key = plan.keys[released.index]
  release_rules(key.rules, released.sent, released.acquired_at, charges)
  return record_signal(key, released.signal)
end

-- For a call that ends because the upstream rejected its keys, those with the indexes `call.rejected`: the milliseconds
-- until a key may be usable, and 1 when a key is left that rejected neither this call nor, with 401, another one.
local function other_keys()
  if not call.rejected then return 0, 0 end
  local rejected, has_other_keys = {}, 0
  for _, index in ipairs(call.rejected) do rejected[index] = true end
  for index, key in ipairs(plan.keys) do
    local _, reason = wait_for_breaker(key)
    if not rejected[index] and reason ~= 'unauthorized' then has_other_keys = 1 end
  end
  local index, wait = choose_key({})
  return index and 0 or wait, has_other_keys
end
