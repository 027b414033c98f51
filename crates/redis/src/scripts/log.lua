-- What sliding logs need.
local of_logs
local function logs()
  if of_logs then return of_logs end
  of_logs = {}

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
  function of_logs.view(log, p, b, n)
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
  function of_logs.load(key, p, b, n, as_kept, unread)
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
    of_logs.view(log, p, b, n)
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
  function of_logs.write(log, p, b, n)
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
  function of_logs.correct(log, p, b, n, is_owed, taken)
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
  return of_logs
end
