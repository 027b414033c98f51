-- Decides one request, or several that share a call, on the server's own clock.
--
-- KEYS: one bucket per charge. ARGV[i]: the terms of KEYS[i], packed: tokens c and microseconds p of the rate in lowest
-- terms, the burst b, the cost n, and flags: 1 counted in windows, 2 in shadow, 4 the last charge of its request. Then,
-- for what is not simply charged: 8 give n back instead of taking it, 16 owe n, 32 take as much as there is up to n, 64
-- the record of a reservation that this request settles, 128 show what is kept; 24 ask for n and take nothing. What is
-- counted in windows has a last byte: 1 a fixed window, 2 a sliding counter, 3 a sliding log.
-- A bucket is packed too: the deficit d, the stamp s, and the c, p and b that it was written under. The record of a
-- reservation is a bucket of one token: reserving takes it, and it comes back when the reservation is over.
-- A sliding counter has a count d of the present window and a count a of the one before. While it is worked on, s is the
-- start of the present window; kept, the stamp lies a before that. Where d is 0, what is kept is the window before.
-- A sliding log is a list: first its terms p and b and the tokens of all its entries, packed; then its entries, the oldest
-- first: an instant and tokens, packed. For a log d is what counts now, and s the newest instant.
--
-- All numbers are integers that a double holds exactly; products that might not be are compared without multiplying.
-- The reply is the time, then for each charge whether it was let pass (1), was not (0), or the error that its bucket
-- gave, and the d and s that it was decided on. A record says whether it was there; of what is shown, the rest stands in
-- the first place: c, p, b, and the milliseconds until it expires. Of a log there are three numbers in the first place: the
-- 1 or 0, and the instants of the entries that have to leave for one more token, and for n.

local spread = unpack
local call, pack, unpack, byte, floor = redis.pcall, struct.pack, struct.unpack, string.byte, math.floor
local time = call('TIME')
if time.err then return time end
local now = time[1] * 1000000 + time[2]

-- How long what is full at that time is kept: rounded up, and never without an end.
local function lasts(full)
  return floor((full - now) / 1000) + 2
end

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

  -- All entries of a log that count: pairs of an instant and tokens.
  local function entries_of(log, p)
    local entries, packed = {}, call('LRANGE', log.key, 1, -1)
    for _, one in ipairs(packed) do
      local at, tokens = unpack('<I7I4', one)
      if log.newest - now > p then at = math.min(at, now) end
      if at + p > now then entries[#entries + 1] = { at, tokens } end
    end
    return entries
  end

  -- The same, from what was made over already.
  local function live_entries(log, p)
    if not log.entries then return entries_of(log, p) end
    local entries = {}
    for i = log.gone + 1, #log.entries do entries[#entries + 1] = log.entries[i] end
    return entries
  end

  -- Writes a log anew.
  local function store(log, entries, p, b)
    local tokens, newest, packed = 0, now, {}
    for i, entry in ipairs(entries) do
      tokens, newest, packed[i] = tokens + entry[2], entry[1], pack('<I7I4', entry[1], entry[2])
    end
    call('DEL', log.key)
    if tokens == 0 then return {} end
    local written = call('RPUSH', log.key, pack('<I6I4I4', p, b, tokens))
    for i = 1, #packed, 500 do
      if type(written) == 'table' then return written end
      written = call('RPUSH', log.key, spread(packed, i, math.min(i + 499, #packed)))
    end
    call('PEXPIRE', log.key, lasts(newest + p))
    return {}
  end

  -- Takes n off entries, from one to another, and drops those that hold nothing.
  local function take_off(entries, n, from, to, step, until_at)
    for i = from, to, step do
      if entries[i][1] <= until_at then
        local off = math.min(n, entries[i][2])
        entries[i][2], n = entries[i][2] - off, n - off
      end
    end
    local kept = {}
    for _, entry in ipairs(entries) do
      if entry[2] > 0 then kept[#kept + 1] = entry end
    end
    return kept
  end

  -- What a decision on n needs to know of a log: what counts, and the entries that have to leave.
  function rare.view_log(log, p, b, n)
    local used, i, first, chunk = log.tokens, 1, 0, {}
    log.gone, log.used, log.next, log.enough = 0, 0, now, now
    if not log.kept then return end
    local function entry()
      if log.entries then return log.entries[i] end
      if i - first > #chunk then
        first, chunk = i - 1, call('LRANGE', log.key, i, i + 63)
      end
      if chunk[i - first] then return { unpack('<I7I4', chunk[i - first]) } end
    end
    local one = entry()
    while one and one[1] + p <= now do
      used, i = used - one[2], i + 1
      one = entry()
    end
    log.gone, log.used, log.next, log.enough = i - 1, used, nil, log.newest
    local for_next, for_n, leaving = math.max(1, used + 1 - b), math.max(1, used + math.max(1, n) - b), 0
    while one do
      leaving, i = leaving + one[2], i + 1
      if not log.next and leaving >= for_next then log.next = one[1] end
      if leaving >= for_n then
        log.enough = one[1]
        break
      end
      one = entry()
    end
    log.next = log.next or log.newest
  end

  -- The log of a key: as it is kept; unread, if all of it is given back; else under its terms. Under other terms, or
  -- where the clock stepped back, its entries are made over.
  function rare.load_log(key, p, b, n, as_kept, unread)
    local log = { key = key, tokens = 0, newest = now, last = 0, unread = unread }
    local head = not unread and call('LINDEX', key, 0)
    if type(head) == 'table' then return head end
    if head then
      local p0, b0
      p0, b0, log.tokens = unpack('<I6I4I4', head)
      if as_kept then p, b, log.terms = p0, b0, { b0, p0, b0, call('PTTL', key) } end
      log.newest, log.last = unpack('<I7I4', call('LINDEX', key, -1))
      log.kept, log.is_ahead = true, log.newest - now > p0
      if log.is_ahead or p ~= p0 or b ~= b0 then
        local entries, tokens = entries_of(log, p0), 0
        for _, entry in ipairs(entries) do tokens = tokens + entry[2] end
        if p ~= p0 or b ~= b0 then entries = take_off(entries, math.max(0, tokens - b), 1, #entries, 1, now + p0 + p) end
        log.entries, log.tokens, log.newest = entries, 0, now
        for _, entry in ipairs(entries) do log.tokens, log.newest = log.tokens + entry[2], entry[1] end
      end
    end
    rare.view_log(log, p, b, n)
    return log
  end

  -- Adds an entry to entries: the newest takes it in if it is of the same instant, or if there are as many as b.
  local function add(entries, n, b)
    local last = entries[#entries]
    local at = last and math.max(now, last[1]) or now
    if last and (last[1] == at or #entries >= b) then
      last[1], last[2] = at, last[2] + n
    else
      entries[#entries + 1] = { at, n }
    end
  end

  -- Remembers that n passed; or, where nothing did, what was made over.
  function rare.write_log(log, p, b, n)
    if log.entries then
      local entries = live_entries(log, p)
      if n > 0 then add(entries, n, b) end
      return store(log, entries, p, b)
    end
    local live = log.used > 0
    local at = live and math.max(now, log.newest) or now
    local written
    if live and at == log.newest then written = call('LSET', log.key, -1, pack('<I7I4', at, log.last + n))
    else written = call('RPUSH', log.key, pack('<I7I4', at, n)) end
    if type(written) == 'table' and written.err then return written end
    -- After the first write of a script none is refused for want of memory.
    if log.kept and log.gone == 0 then call('LSET', log.key, 0, pack('<I6I4I4', p, b, log.used + n))
    else
      if log.kept then call('LTRIM', log.key, log.gone + 1, -1) end
      call('LPUSH', log.key, pack('<I6I4I4', p, b, log.used + n))
    end
    call('PEXPIRE', log.key, lasts(at + p))
    return {}
  end

  -- Gives n back, what passed last first, or what passed at `taken`; or owes n more.
  function rare.correct_log(log, p, b, n, is_owed, taken)
    if log.unread then
      call('DEL', log.key)
      return
    end
    if not log.kept and not is_owed then return end
    local entries = live_entries(log, p)
    if is_owed then
      n = math.min(n, 2 * b - log.used)
      if n > 0 then add(entries, n, b) end
    elseif not taken or taken + p > now then
      entries = take_off(entries, n, #entries, 1, -1, taken or now + 2 * p)
    end
    store(log, entries, p, b)
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
  local kind, log = window and byte(ARGV[i], -1), nil
  local counter = kind == 2
  local exact = c * p < 9007199254740992
  local kept = kind ~= 3 and call('GET', key)
  local d, s, a, changed = 0, now, 0, false
  if window then s = now - now % p end
  if kind == 3 then
    local forgets = flags >= 8 and flags < 16 and n >= 2 * b and reserved == nil
    log = slow().load_log(key, p, b, n, flags >= 128, forgets)
    if log.err then fault, log = log.err, nil else d, s = log.used, log.newest end
  elseif kept then
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
      if log then result = log.used > 0 and log.terms or 0
      elseif kept then result, d, s = special.show(key, kept) end
    elseif flags >= 64 then
      reserved = kept and select(2, unpack('<I5I7', kept))
      if kept then call('DEL', key) end
      result = kept and 1 or 0
    elseif flags >= 32 then
      n, charged = special.share(special.left(window, counter, d, s, a, c, p, b), n, unpack('<I4', ARGV[i], 22)), true
      if log then special.view_log(log, p, b, n) end
    elseif flags >= 24 then
      -- Decided as a charge is, of which nothing is taken.
      charged = true
    elseif log then
      if reserved ~= false then special.correct_log(log, p, b, n, flags >= 16, reserved) end
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
    if log then log.charged = true end
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
          local written = slow().write_log(log, p, b, passed)
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
