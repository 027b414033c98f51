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
