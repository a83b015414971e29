-- Choosing among the plan's keys, and leaving one.

local pickers = {}

-- The plan's order.
pickers['prioritized'] = {
  order = function(indexes) return indexes end,
  note = function() end,
}

-- Beginning behind the key that had the last turn.
pickers['round-robin'] = {
  order = function(indexes)
    local last = redis.call('GET', plan.turn)
    local turned, after = {}, 0
    for index, key in ipairs(plan.keys) do
      if key.id == last then after = index end
    end
    for offset = 1, #indexes do turned[offset] = (after + offset - 1) % #indexes + 1 end
    return turned
  end,
  note = function(key) redis.call('SET', plan.turn, key.id, 'PX', DAY) end,
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
  note = function(key)
    redis.call('HSET', plan.turn, key.id, redis.call('HINCRBY', plan.turn, 'uses', 1))
    redis.call('PEXPIRE', plan.turn, DAY)
  end,
}

local picker = pickers[#plan.keys > 1 and plan.selection or 'prioritized']

-- The key's index and whether this call is its probe; or nil, the milliseconds until a key may be free, and why:
-- `refused` only when all were refused with 401.
local function choose(tried)
  local skip, indexes = {}, {}
  for _, index in ipairs(tried) do skip[index] = true end
  for index in ipairs(plan.keys) do indexes[index] = index end
  local soonest = {}
  for _, index in ipairs(picker.order(indexes)) do
    if not skip[index] then
      local key = plan.keys[index]
      local wait, why = shut(key)
      if not wait then
        local is_probe = why
        wait, why = wait_for(key.rules), 'limit'
        if wait == 0 then return index, is_probe end
      end
      if why == 'busy' then why = 'trouble' end
      soonest[why] = math.min(soonest[why] or wait, wait)
    end
  end
  local why = soonest.trouble and 'trouble' or soonest.limit and 'limit' or 'refused'
  return nil, math.min(soonest.trouble or soonest.limit or soonest.refused or 0, soonest.limit or math.huge), why
end

local function take(index, is_probe)
  local key = plan.keys[index]
  picker.note(key)
  reserve(key.rules)
  if is_probe then begin_probe(key) end
end

-- `left`: the key's index, what came of it, whether a request went out with it, and since when it was held.
-- For how many milliseconds its breaker opened; 0: it did not.
local function leave(left, charges)
  local key = plan.keys[left.index]
  release(key.rules, left.sent, left.at, charges)
  return record(key, left.verdict)
end

-- For a call that ends refused, by the keys with the indexes `call.refused`: milliseconds until a key may be usable,
-- and 1 when there is one that refused neither this call nor, with 401, another one.
local function outlook()
  if not call.refused then return 0, 0 end
  local refused, others = {}, 0
  for _, index in ipairs(call.refused) do refused[index] = true end
  for index, key in ipairs(plan.keys) do
    local _, why = shut(key)
    if not refused[index] and why ~= 'refused' then others = 1 end
  end
  local index, wait = choose({})
  return index and 0 or wait, others
end
