-- Decides one request, or several that share a call, on the server's own clock.
--
-- KEYS: one bucket per charge. ARGV[i]: the terms of KEYS[i], packed: tokens c and microseconds p of the rate in lowest
-- terms, the burst b, the cost n, and flags: 1 counted in windows, 2 in shadow, 4 the last charge of its request. Then,
-- for what is not simply charged: 8 give n back instead of taking it, 16 owe n, 32 take as much as there is up to n, 64
-- the record of a reservation that this request settles, 128 show what is kept; 24 ask for n and take nothing. What is
-- counted in windows has a last byte: 1 a fixed window, 2 a sliding counter.
-- A bucket is packed too: the deficit d, the stamp s, and the c, p and b that it was written under. The record of a
-- reservation is a bucket of one token: reserving takes it, and it comes back when the reservation is over.
-- A sliding counter has a count d of the present window and a count a of the one before. While it is worked on, s is the
-- start of the present window; kept, the stamp lies a before that. Where d is 0, what is kept is the window before.
--
-- All numbers are integers that a double holds exactly; products that might not be are compared without multiplying.
-- The reply is the time, then for each charge whether it was let pass (1), was not (0), or the error that its bucket
-- gave, and the d and s that it was decided on. A record says whether it was there; of what is shown, the rest stands in
-- the first place: c, p, b, and the milliseconds until it expires.

local call, pack, unpack, byte, floor = redis.pcall, struct.pack, struct.unpack, string.byte, math.floor
local time = call('TIME')
if time.err then return time end
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
  local function advance(d, s, c, p, b)
    local kept = math.min(d, 2 * b)
    local over, most = d - kept, math.max(kept, b)
    if now < s or over > 0 then
      -- A clock that stepped back further than the deficit, or the burst, takes to come back: the stamp becomes now.
      -- Of more than two bursts the rest had come back before the last charge, so the clock was that much further.
      local explained = over <= most
      if now < s then explained = explained and at_most(s - now, c, most - over, p)
      else explained = explained or at_most(over - most, p, now - s, c) end
      if not explained then d, s = kept, now end
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
      d, s = advance(d0, s0, c0, p0, b0)
      if c ~= c0 or p ~= p0 then
        -- What is left of a step under the old rate pays back whole tokens; its rest is rounded up to one at most.
        if now > s then d = d - math.max(0, floor((now - s) * c0 / p0 - 0.000002)) end
        s = math.max(s, now)
      end
    end
    local other = c ~= c0 or p ~= p0 or b ~= b0
    if other and d > b then d = b end
    return d, s, s < s0 or other
  end

  -- Whole tokens that have come back since the stamp and are not taken off the deficit yet.
  local function paid(window, s, c, p)
    if window or s >= now then return 0 end
    local whole = floor((now - s) * c / p)
    -- The product may have been rounded: by less than one token.
    if not at_most(whole, p, now - s, c) then return whole - 1 end
    return at_most(whole + 1, p, now - s, c) and whole + 1 or whole
  end

  -- The deficit after n were given back, at most to full.
  function rare.give(window, d, s, c, p, n)
    d = d - n
    return (d <= 0 or (not window and s < now and at_most(d, p, now - s, c))) and 0 or d
  end

  -- The deficit and stamp after n more are owed: at most two bursts are ever missing.
  function rare.owe(window, d, s, c, p, b, n)
    d = d + n
    local over = d - 2 * b
    if over < 0 or (not window and s < now and not at_most(now - s, c, over, p)) then return d, s end
    return 2 * b, window and s or math.max(s, now)
  end

  -- Whole tokens that the count of the window before still weighs, rounded up.
  local function weighed(a, s, p)
    local covered = p - math.max(0, now - s)
    local whole = floor(a * covered / p)
    -- The product may have been rounded: by less than one token.
    if not at_most(whole, p, a, covered) then whole = whole - 1
    elseif at_most(whole + 1, p, a, covered) then whole = whole + 1 end
    return at_most(a, covered, whole, p) and whole or whole + 1
  end

  -- A sliding counter that was kept, under its terms: d, s, a, and whether it is to be rewritten.
  function rare.load_counter(c, p, b, d0, s0, c0, p0, b0)
    local past = s0 % p0
    local a = past > 0 and p0 - past or 0
    local d, s, open, other = d0, s0 + a, now - now % p0, c ~= c0 or p ~= p0 or b ~= b0
    if d0 == 0 or open - s > p0 then return 0, now - now % p, 0, false end
    local changed = other or s - now > p0
    if open - s == p0 then d, s, a = 0, open, d0
    elseif s - now > p0 then
      s = open
      if s < a then d, a = math.min(d + a, 2 * b0), 0 end
    end
    if other then
      local all = d + weighed(a, s, p0)
      if p ~= p0 or all > b then
        s = math.max(s, now)
        d, s, a = math.min(all, b), s - s % p, 0
      end
    end
    return d, s, a, changed
  end

  -- Is there room for n in a sliding counter?
  function rare.has_room(d, s, a, p, b, n)
    local room = b - d - n
    return room >= 0 and at_most(a, p - math.max(0, now - s), room, p)
  end

  -- The counts after n were given back: to the window in which they were taken, else to the present one first.
  function rare.give_counter(d, s, a, p, n, taken)
    if not taken then
      local off = math.min(n, d)
      return d - off, math.max(0, a - (n - off))
    end
    if taken >= s then return math.max(0, d - n), a end
    return d, taken >= s - p and math.max(0, a - n) or a
  end

  -- The present count after n more are owed.
  function rare.owe_counter(d, s, a, p, b, n)
    return math.max(d, math.min(d + n, 2 * b - weighed(a, s, p)))
  end

  -- What is left to take.
  function rare.left(window, counter, d, s, a, c, p, b)
    return counter and b - d - weighed(a, s, p) or b - d + paid(window, s, c, p)
  end

  -- What is taken of `left` where n are wanted, and `need` are enough: n, or half of what is there, or `need`.
  function rare.share(left, n, need)
    if left >= n then return n end
    return left < need and need or math.max(need, floor(left / 2))
  end

  -- What is kept, as it is.
  function rare.show(key, kept)
    local d, s, c, p, b = unpack('<I5I7I4I6I4', kept)
    return { c, p, b, call('PTTL', key) }, d, s
  end
  return rare
end

local reply = { now }
local first, allowed, fault = 1, true, nil
local pending
-- When the reservation that is being settled was made; false if it is not open.
local reserved
for i = 1, #KEYS do
  local key = KEYS[i]
  local c, p, b, n, flags = unpack('<I4dI4I4B', ARGV[i])
  local window, shadow, last = flags % 2 == 1, flags % 4 >= 2, flags % 8 >= 4
  local counter = window and byte(ARGV[i], -1) == 2
  local exact = c * p < 9007199254740992
  local kept = call('GET', key)
  local d, s, a, changed = 0, now, 0, false
  if window then s = now - now % p end
  if kept then
    if type(kept) == 'table' then
      fault = kept.err
    elseif #kept ~= 26 then
      fault = 'WRONGTYPE The key holds no bucket'
    else
      local d0, s0, c0, p0, b0 = unpack('<I5I7I4I6I4', kept)
      if counter then
        d, s, a, changed = slow().load_counter(c, p, b, d0, s0, c0, p0, b0)
      elseif window or c ~= c0 or p ~= p0 or b ~= b0 or s0 > now or d0 > b or not exact then
        d, s, changed = slow().load(window, c, p, b, d0, s0, c0, p0, b0)
      elseif d0 > 0 then
        local steps = floor((now - s0) / p)
        local left, since = d0 - steps * c, s0 + steps * p
        if left > 0 and (left > c or left * p > (now - since) * c) then d, s = left, since end
      end
    end
  end

  local charged, ok, result = flags < 8, false, nil
  if not charged and not fault then
    local special = slow()
    if flags >= 128 then
      if kept then result, d, s = special.show(key, kept) end
    elseif flags >= 64 then
      reserved = kept and select(2, unpack('<I5I7', kept))
      if kept then call('DEL', key) end
      result = kept and 1 or 0
    elseif flags >= 32 then
      n, charged = special.share(special.left(window, counter, d, s, a, c, p, b), n, unpack('<I4', ARGV[i], 22)), true
    elseif flags >= 24 then
      -- Decided as a charge is, of which nothing is taken.
      charged = true
    else
      local d1, s1, a1 = d, s, a
      if reserved == false then n = 0
      elseif counter and flags >= 16 then d1 = special.owe_counter(d, s, a, p, b, n)
      elseif counter then d1, a1 = special.give_counter(d, s, a, p, n, reserved)
      elseif flags >= 16 then d1, s1 = special.owe(window, d, s, c, p, b, n)
      elseif not (window and reserved and reserved < s) then d1 = special.give(window, d, s, c, p, n) end
      if d + a > 0 and d1 + a1 == 0 then call('DEL', key) end
      d, s, a, changed = d1, s1, a1, d1 ~= d or s1 ~= s or a1 ~= a
    end
  end

  if charged then
    local over = d + n - b
    -- A look passes, also where more than a burst is missing.
    ok = over <= 0 or n == 0
    if a > 0 and n > 0 then ok = slow().has_room(d, s, a, p, b, n) end
    if not ok and not window and s < now then
      if not exact then ok = slow().at_most(over, p, now - s, c)
      elseif over <= c then ok = over * p <= (now - s) * c end
    end
    if not ok and not shadow then allowed = false end
    if flags >= 24 and flags < 32 then n = 0 end
  end

  if not (last and first == i) then
    -- One of several: they are written together.
    pending = pending or {}
    pending[i] = { d, s, ok, changed, c, p, b, n, window, result, counter, a }
  end
  if last then
    for j = first, i do
      if first ~= i then
        local one = pending[j]
        key, d, s, ok, changed, c, p, b, n, window, result, counter, a =
          KEYS[j], one[1], one[2], one[3], one[4], one[5], one[6], one[7], one[8], one[9], one[10], one[11], one[12]
      end
      result = result or ok and 1 or 0
      if fault then
        result = fault
      elseif n > 0 and ((ok and allowed) or (changed and d + a > 0)) then
        local after, stamp = (ok and allowed) and d + n or d, s
        -- Kept until it is full: rounded up, and never without an expiry.
        local full = window and s + p or s + after * p / c
        if counter then
          full = after > 0 and full + p or full
          if after > 0 then stamp = s - a else after, stamp = a, s - p end
        end
        local ms = floor((full - now) / 1000) + 2
        local written = call('SET', key, pack('<I5I7I4I6I4', after, stamp, c, p, b), 'PX', ms)
        if written.err then result = written.err end
      end
      local k = #reply
      reply[k + 1], reply[k + 2], reply[k + 3] = result, d, s - a
    end
    first, allowed, fault, reserved = i + 1, true, nil, nil
  end
end
return reply
