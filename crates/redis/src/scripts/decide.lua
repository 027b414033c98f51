-- Decides one request, or several that share a call, on the server's own clock.
--
-- KEYS: one bucket per charge. ARGV[i]: the terms of KEYS[i], packed: tokens c and microseconds p of the rate in lowest
-- terms, the burst b, the cost n, and flags: 1 a fixed window, 2 in shadow, 4 the last charge of its request, 8 give n
-- back instead of taking it.
-- A bucket is packed too: the deficit d, the stamp s, and the c, p and b that it was written under.
--
-- All numbers are integers that a double holds exactly; products that might not be are compared without multiplying.
-- The reply is the time, then for each charge whether it was let pass (1), was not (0), or the error that its bucket
-- gave, and the d and s that it was decided on.

local call, pack, unpack, floor = redis.pcall, struct.pack, struct.unpack, math.floor
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- What the usual bucket never needs: made when it is first needed.
local rare
local function slow()
  if rare then return rare end
  rare = {}

  -- x p <= r c, for x, r >= 0: compares x/c with r/p as continued fractions, so that no product is formed.
  local function at_most(x, p, r, c)
    while x > 0 do
      local a, b = floor(x / c), floor(r / p)
      if a ~= b then return a < b end
      x, r = x - a * c, r - b * p
      if x == 0 then return true end
      if r == 0 then return false end
      x, p, r, c = p, x, c, r
    end
    return true
  end
  rare.at_most = at_most

  -- The deficit and stamp of a token bucket, brought up to now.
  local function settle(d, s, c, p, b)
    local over = d > b and d - b or 0
    if now < s or over > 0 then
      -- A clock that stepped back further than the bucket takes to fill: the stamp becomes now.
      local explained = over <= b
      if now < s then explained = explained and at_most(s - now, c, b - over, p)
      else explained = explained or at_most(over - b, p, now - s, c) end
      if not explained then d, s = d - over, now end
    end
    local elapsed = now - s
    if d == 0 then return 0, now end
    if elapsed < 0 then return d, s end
    local steps = floor(elapsed / p)
    if steps * c >= d then return 0, now end
    d, s = d - steps * c, s + steps * p
    if at_most(d, p, now - s, c) then return 0, now end
    return d, s
  end

  -- A bucket that was kept, under its terms; and whether it is to be rewritten even if nothing is taken.
  function rare.load(window, c, p, b, d0, s0, c0, p0, b0)
    local d, s
    if window then
      local start = now - now % p
      if d0 == 0 or now - now % p0 > s0 then return 0, start, false end
      d, s = d0, (s0 - now > p0 or p ~= p0) and start or s0
    else
      d, s = settle(d0, s0, c0, p0, b0)
      if c ~= c0 or p ~= p0 then
        -- What is left of a step under the old rate pays back whole tokens; its rest is rounded up to one at most.
        if now > s then d = d - math.max(0, floor((now - s) * c0 / p0 - 0.000002)) end
        s = math.max(s, now)
      end
    end
    if b ~= b0 and d > b then d = b end
    return d, s, s < s0 or c ~= c0 or p ~= p0 or b ~= b0
  end
  return rare
end

local reply = { now }
local first, allowed, fault = 1, true, nil
local pending
for i = 1, #KEYS do
  local key = KEYS[i]
  local c, p, b, n, flags = unpack('<I4dI4I4B', ARGV[i])
  local window, shadow, last = flags % 2 == 1, flags % 4 >= 2, flags % 8 >= 4
  local exact = c * p < 9007199254740992
  local kept = call('GET', key)
  local d, s, changed = 0, now, false
  if window then s = now - now % p end
  if kept then
    if type(kept) == 'table' then
      fault = kept.err
    else
      local d0, s0, c0, p0, b0 = unpack('<ddI4dI4', kept)
      if window or c ~= c0 or p ~= p0 or b ~= b0 or s0 > now or d0 > b or not exact then
        d, s, changed = slow().load(window, c, p, b, d0, s0, c0, p0, b0)
      elseif d0 > 0 then
        local steps = floor((now - s0) / p)
        local left, since = d0 - steps * c, s0 + steps * p
        if left > 0 and (left > c or left * p > (now - since) * c) then d, s = left, since end
      end
    end
  end
  if flags >= 8 then
    -- Given back, at most to full.
    local after = d - n
    if after <= 0 or (not window and s < now and slow().at_most(after, p, now - s, c)) then after = 0 end
    if d > 0 and after == 0 then call('DEL', key) end
    d, n, changed = after, 1, after > 0
  end
  local over = flags >= 8 and 1 or d + n - b
  local ok = over <= 0
  if not ok and not window and s < now and flags < 8 then
    if not exact then ok = slow().at_most(over, p, now - s, c)
    elseif over <= c then ok = over * p <= (now - s) * c end
  end
  if not ok and not shadow then allowed = false end

  if not (last and first == i) then
    -- One of several: they are written together.
    pending = pending or {}
    pending[i] = { d, s, ok, changed, c, p, b, n, window }
  end
  if last then
    for j = first, i do
      if first ~= i then
        local one = pending[j]
        key, d, s, ok, changed, c, p, b, n, window =
          KEYS[j], one[1], one[2], one[3], one[4], one[5], one[6], one[7], one[8], one[9]
      end
      local result = ok and 1 or 0
      if fault then
        result = fault
      elseif n > 0 and ((ok and allowed) or (changed and d > 0)) then
        local after = (ok and allowed) and d + n or d
        -- Kept until it is full: rounded up, and never without an expiry.
        local full = window and s + p or s + after * p / c
        local ms = floor((full - now) / 1000) + 2
        local written = call('SET', key, pack('<ddI4dI4', after, s, c, p, b), 'PX', ms)
        if written.err then result = written.err end
      end
      local k = #reply
      reply[k + 1], reply[k + 2], reply[k + 3] = result, d, s
    end
    first, allowed, fault = i + 1, true, nil
  end
end
return reply
