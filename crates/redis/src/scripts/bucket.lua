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

  -- What is left to take.
  function rare.left(window, d, s, c, p, b)
    return b - d + paid(window, s, c, p)
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
