-- The requests, one after the other: each bucket is read and decided on, and when the last of a request is, they are
-- written together.

local reply = { now }
local first, allowed, fault = 1, true, nil
local pending
-- When the reservation that is being settled was made; false if it is not open.
local reserved
for i = 1, #KEYS do
  local key = KEYS[i]
  local c, p, b, n, flags = unpack('<I4dI4I4B', ARGV[i])
  local window, shadow, last = flags % 2 == 1, flags % 4 >= 2, flags % 8 >= 4
  local kind, log = window and byte(ARGV[i], -1), nil
  local counter = kind == 2
  local exact = c * p < 9007199254740992
  local kept = kind ~= 3 and call('GET', key)
  local d, s, a, changed = 0, now, 0, false
  if window then s = now - now % p end
  if kind == 3 then
    local forgets = flags >= 8 and flags < 16 and n >= 2 * b and reserved == nil
    log = logs().load(key, p, b, n, flags >= 128, forgets)
    if log.err then fault, log = log.err, nil else d, s = log.used, log.newest end
  elseif kept then
    if type(kept) == 'table' then
      fault = kept.err
    elseif #kept ~= 26 then
      fault = 'WRONGTYPE The key holds no bucket'
    else
      local d0, s0, c0, p0, b0 = unpack('<I5I7I4I6I4', kept)
      if counter then
        d, s, a, changed = counters().load(c, p, b, d0, s0, c0, p0, b0)
      elseif kind == 1 and s0 <= s and c == c0 and p == p0 and b == b0 then
        -- Counted in the present window, or in one that is over.
        if s0 == s then d = d0 end
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
      if log then result = log.used > 0 and log.terms or 0
      elseif kept then result, d, s = special.show(key, kept) end
    elseif flags >= 64 then
      reserved = kept and select(2, unpack('<I5I7', kept))
      if kept then call('DEL', key) end
      result = kept and 1 or 0
    elseif flags >= 32 then
      local left = counter and counters().left(d, s, a, p, b) or special.left(window, d, s, c, p, b)
      n, charged = special.share(left, n, unpack('<I4', ARGV[i], 22)), true
      if log then logs().view(log, p, b, n) end
    elseif flags >= 24 then
      -- Decided as a charge is, of which nothing is taken.
      charged = true
    elseif log then
      if reserved ~= false then logs().correct(log, p, b, n, flags >= 16, reserved) end
    else
      local d1, s1, a1 = d, s, a
      if reserved == false then n = 0
      elseif counter and flags >= 16 then d1 = counters().owe(d, s, a, p, b, n)
      elseif counter then d1, a1 = counters().give(d, s, a, p, n, reserved)
      elseif flags >= 16 then d1, s1 = special.owe(window, d, s, c, p, b, n)
      elseif not (window and reserved and reserved < s) then d1 = special.give(window, d, s, c, p, n) end
      if d + a > 0 and d1 + a1 == 0 then call('DEL', key) end
      d, s, a, changed = d1, s1, a1, d1 ~= d or s1 ~= s or a1 ~= a
    end
  end

  if charged then
    local over = d + n - b
    if log then log.charged = true end
    -- A look passes, also where more than a burst is missing.
    ok = over <= 0 or n == 0
    if a > 0 and n > 0 then ok = counters().has_room(d, s, a, p, b, n) end
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
    pending[i] = { d, s, ok, changed, c, p, b, n, window, result, counter, a, log }
  end
  if last then
    for j = first, i do
      if first ~= i then
        local one = pending[j]
        key, d, s, ok, changed, c, p, b, n, window, result, counter, a, log =
          KEYS[j], one[1], one[2], one[3], one[4], one[5], one[6], one[7], one[8], one[9], one[10], one[11], one[12], one[13]
      end
      result = result or ok and 1 or 0
      if fault then
        result = fault
      elseif log then
        local passed = ok and allowed and n or 0
        -- A denial writes what a clock that stepped back has made of it.
        if passed > 0 or (n > 0 and log.charged and not ok and log.entries) then
          local written = logs().write(log, p, b, passed)
          if written.err then result = written.err end
        end
        if result == 1 or result == 0 then result = { result, log.next, log.enough } end
      elseif n > 0 and ((ok and allowed) or (changed and d + a > 0)) then
        local after, stamp = (ok and allowed) and d + n or d, s
        local full = window and s + p or s + after * p / c
        if counter then
          full = after > 0 and full + p or full
          if after > 0 then stamp = s - a else after, stamp = a, s - p end
        end
        local written = call('SET', key, pack('<I5I7I4I6I4', after, stamp, c, p, b), 'PX', lasts(full))
        if written.err then result = written.err end
      end
      local k = #reply
      reply[k + 1], reply[k + 2], reply[k + 3] = result, d, s - a
    end
    first, allowed, fault, reserved = i + 1, true, nil, nil
  end
end
return reply
