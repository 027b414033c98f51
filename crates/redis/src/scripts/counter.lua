-- What sliding counters need.
local of_counters
local function counters()
  if of_counters then return of_counters end
  of_counters = {}
  local at_most = slow().at_most

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
  function of_counters.load(c, p, b, d0, s0, c0, p0, b0)
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
  function of_counters.has_room(d, s, a, p, b, n)
    local room = b - d - n
    return room >= 0 and at_most(a, p - math.max(0, now - s), room, p)
  end

  -- The counts after n were given back: to the window in which they were taken, else to the present one first.
  function of_counters.give(d, s, a, p, n, taken)
    if not taken then
      local off = math.min(n, d)
      return d - off, math.max(0, a - (n - off))
    end
    if taken >= s then return math.max(0, d - n), a end
    return d, taken >= s - p and math.max(0, a - n) or a
  end

  -- The present count after n more are owed.
  function of_counters.owe(d, s, a, p, b, n)
    return math.max(d, math.min(d + n, 2 * b - weighed(a, s, p)))
  end

  -- What is left to take.
  function of_counters.left(d, s, a, p, b)
    return b - d - weighed(a, s, p)
  end
  return of_counters
end
