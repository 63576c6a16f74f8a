-- A route handler of memcached's proxy (1.6.45) for the time in which the number of servers changes.
--
--   routes{ default = route_scale{ child_old = "old", child_new = "new", old = 3, new = 4, phase = "move" } }
--
-- A key that moves has two places: a server of the pool `old` and one of the pool `new`. The phases differ in the place
-- that they use first, called `near` below. The other one is `far`.
--
--   prepare  near is the old place. Pods of `move` may already write to the new one: reads that miss try it, too.
--   move     near is the new place. Reads that miss try the old one, so that items are found until they are written.
--   finish   near is the new place, and reads use no other one. Pods of `move` may still read the old one.
--
-- Pods of two neighbours of (plain old, prepare, move, finish, plain new) may run at the same time, and no others.
-- After each acknowledged write, at most one place has the item. This follows from three rules:
--
--   * A write changes near, and then deletes at far. In the other order, two writers in neighbouring phases can leave
--     one copy in each place.
--   * A write is acknowledged only after the deletion is confirmed. Otherwise the client gets the error of far, and the
--     write may have happened or not, as after any error.
--   * A place that does not respond is never taken for one without the item.

-- XXH3 (64 bits, seed 0, default secret) and jump hashing, as the pools compute them. They show whether a key moves.
-- The pools do not: a server that they mask has the same response as one that is broken.
local P1 <const>, P2 <const>, P3 <const> = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
local LOW <const>, RRMXMX <const> = 0xFFFFFFFF, 0x9FB21C651E98DF25
local read <const> = string.unpack

local secret = {} -- the word of 64 bits at each offset
do
    local digits = "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
        .. "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
        .. "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
        .. "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
    local bytes = digits:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end)
    for offset = 0, #bytes - 8 do secret[offset] = read("<i8", bytes, offset + 1) end
end

-- The product has 128 bits: the exclusive or of its halves.
local function folded(a, b)
    local a0, a1, b0, b1 = a & LOW, a >> 32, b & LOW, b >> 32
    local cross = a1 * b0
    local carry = (a0 * b0 >> 32) + (cross & LOW) + a0 * b1
    return a * b ~ (a1 * b1 + (cross >> 32) + (carry >> 32))
end

local function mixed(key, from, at)
    local a, b = read("<i8i8", key, from + 1)
    return folded(a ~ secret[at], b ~ secret[at + 8])
end

local function avalanche(h)
    h = (h ~ h >> 37) * 0x165667919E3779F9
    return h ~ h >> 32
end

local function upto3(key, n)
    local h = key:byte(1) << 16 | key:byte(n // 2 + 1) << 24 | key:byte(n) | n << 8
    h = h ~ (secret[0] ~ secret[4]) & LOW
    h = (h ~ h >> 33) * P2
    h = (h ~ h >> 29) * P3
    return h ~ h >> 32
end

local function upto8(key, n)
    local h = (read("<I4", key, n - 3) + (read("<I4", key) << 32)) ~ secret[8] ~ secret[16]
    h = (h ~ (h << 49 | h >> 15) ~ (h << 24 | h >> 40)) * RRMXMX
    h = (h ~ (h >> 35) + n) * RRMXMX
    return h ~ h >> 28
end

local function upto16(key, n)
    local a = read("<i8", key) ~ secret[24] ~ secret[32]
    local b = read("<i8", key, n - 7) ~ secret[40] ~ secret[48]
    return avalanche(n + read(">i8", string.pack("<i8", a)) + b + folded(a, b))
end

local function upto128(key, n)
    local h = n * P1
    for from = 0, (n - 1) // 32 * 16, 16 do
        h = h + mixed(key, from, 2 * from) + mixed(key, n - 16 - from, 2 * from + 16)
    end
    return avalanche(h)
end

local function upto240(key, n)
    local h = n * P1
    for from = 0, 112, 16 do h = h + mixed(key, from, from) end
    h = avalanche(h)
    for from = 128, n // 16 * 16 - 16, 16 do h = h + mixed(key, from, from - 125) end
    return avalanche(h + mixed(key, n - 16, 119))
end

-- At most 250 bytes: three stripes of 64, and one of the last 64.
local function upto250(key, n)
    local lanes = { [0] = 0xC2B2AE3D, P1, P2, P3, 0x85EBCA77C2B2AE63, 0x85EBCA77, 0x27D4EB2F165667C5, 0x9E3779B1 }
    local function stripe(from, at)
        for lane = 0, 7 do
            local word = read("<i8", key, from + 8 * lane + 1)
            local keyed = word ~ secret[at + 8 * lane]
            lanes[lane ~ 1] = lanes[lane ~ 1] + word
            lanes[lane] = lanes[lane] + (keyed & LOW) * (keyed >> 32)
        end
    end
    for number = 0, 2 do stripe(64 * number, 8 * number) end
    stripe(n - 64, 121)
    local h = n * P1
    for lane = 0, 6, 2 do
        h = h + folded(lanes[lane] ~ secret[11 + 8 * lane], lanes[lane + 1] ~ secret[19 + 8 * lane])
    end
    return avalanche(h)
end

local function hash(key)
    local n = #key
    local long = n > 240 and upto250 or n > 128 and upto240 or n > 16 and upto128
    return (long or n > 8 and upto16 or n > 3 and upto8 or upto3)(key, n)
end

-- The division has the precision of C: a number of 31 bits by an integer of at most 2^31.
local function slot(key, slots)
    local h, found, following = hash(key), 0, 0
    while following < slots do
        found = following
        h = h * 2862933555777941757 + 1
        following = math.floor((found + 1) * (0x1p31 / ((h >> 33) + 1)))
    end
    return found
end

function route_scale_conf(options, ctx)
    for _, pool in ipairs{ "old", "new" } do
        local size = options[pool]
        if math.type(size) ~= "integer" or size < 1 then error("route_scale: " .. pool .. " must be a size") end
    end
    if options.old == options.new then error("route_scale: old and new must differ") end
    if not ({ prepare = 1, move = 1, finish = 1 })[options.phase] then error("route_scale: unknown phase") end
    for _, name in ipairs{ "new", "old", "miss", "refused" } do
        options["stat_" .. name] = ctx:get_stats_id("scale_" .. name)
    end
    return options
end

local NOT_FOUND <const>, NOT_STORED <const> = mcp.MCMC_CODE_NOT_FOUND, mcp.MCMC_CODE_NOT_STORED
local EXISTS <const>, SERVER_ERROR <const> = mcp.MCMC_CODE_EXISTS, mcp.MCMC_CODE_SERVER_ERROR
local MG <const>, MS <const>, MA <const>, MD <const> = mcp.CMD_MG, mcp.CMD_MS, mcp.CMD_MA, mcp.CMD_MD
local PLAIN <const> = {} -- by command; the others depend on their flags
for name, commands in pairs{
    fetch = { "GET", "GETS", "GAT", "GATS", "ME" }, store = { "SET" }, add = { "ADD" }, remove = { "DELETE" },
    change = { "REPLACE", "APPEND", "PREPEND", "CAS", "INCR", "DECR", "TOUCH" },
} do
    for _, command in ipairs(commands) do PLAIN[mcp["CMD_" .. command]] = name end
end

-- The name of the function below for a request. `change` needs an item, and acts at the place that has it. `create` is
-- a change or a fetch with N, which creates an item if there is none. Servers ignore T of md, and I of ms without C.
local function kind(req, cmd)
    local known = PLAIN[cmd]
    if known then return known end
    local creates = req:has_flag("N")
    if cmd == MG then return creates and "create" or "fetch" end
    if cmd == MA then return creates and "create" or "change" end
    if cmd == MD then
        return (req:has_flag("C") or req:has_flag("I") or req:has_flag("x")) and "change" or "remove"
    end
    local _, token = req:flag_token("M")
    local mode = token and token:sub(1, 1) or "S"
    if mode == "E" then return "add" end
    if mode == "A" or mode == "P" then return creates and "create" or "change" end
    return (mode == "R" or req:has_flag("C")) and "change" or "store"
end

-- The reply to an `add` of an item that far has. The request must not be sent there: if the item has just expired, it
-- would be stored at the wrong place. The proxy sends a string even after noreply, but not a response without an error.
local function exists(req, cmd, found)
    local line = req:raw_line() -- `req:token` returns the key for every index
    if cmd ~= MS then return line:find(" noreply", 1, true) and found or "NOT_STORED\r\n" end
    local size, flags = line:match("^%S+ +%S+ +(%S+)(.*)")
    local reply = "NS"
    for flag, token in flags:gmatch("(%a)(%S*)") do
        if flag == "O" then reply = reply .. " O" .. token end
        if flag == "k" then reply = reply .. " k" .. req:key() .. (req:has_flag("b") and " b" or "") end
        if flag == "c" then reply = reply .. " c0" end
        if flag == "s" then reply = reply .. " s" .. size end
    end
    return reply .. "\r\n"
end

local function scale(rctx, my)
    local searches = my.phase ~= "finish"
    local act, probe = {}, rctx:request_new() -- one object for all requests: no garbage

    local function send(req, handle) return rctx:enqueue_and_wait(req, handle) end
    -- A command for the same key. The key of a request with the flag b is hashed as it is written, in base64.
    local function send_instead(cmd, req, handle)
        my.mutators[cmd](probe, req, not PLAIN[req:command()] and req:has_flag("b"))
        return send(probe, handle)
    end
    local function refused(res)
        mcp.stat(my.stat_refused, 1)
        return res
    end
    local function responded(res) return res:raw_string() ~= nil end -- an error of the proxy has a code, but no text
    local function missed(res)
        local code = res:code()
        return code == NOT_FOUND or code == NOT_STORED
    end
    local function settled(req, res)
        local deleted = send_instead("md", req, my.clear)
        return deleted:ok() and res or refused(deleted)
    end
    local function has_changed(res, cmd)
        return res:ok() and not missed(res) and res:code() ~= EXISTS and cmd ~= mcp.CMD_TOUCH
    end

    -- Returns a response, and whether no place has the item.
    local function fetch(req)
        local first = send(req, my.near)
        if first:hit() then
            mcp.stat(my.stat_near, 1)
            return first
        end
        if not searches then return first, first:ok() end
        local second = send(req, my.far)
        if second:hit() then
            mcp.stat(my.stat_far, 1)
            return second
        end
        if not first:ok() then return first end
        if second:ok() then return first, true end
        return my.phase == "move" and second or first -- see `change`
    end
    local function change(req, cmd)
        local first = send(req, my.near)
        if has_changed(first, cmd) then return settled(req, first) end
        if not first:ok() or not missed(first) then return first end
        if not searches then return first, true end
        local second = send(req, my.far)
        if second:ok() then return second, missed(second) end
        -- In prepare, far has an item only if a pod of `move` has written it. Without far, it is as if it were evicted.
        if responded(second) then return second end
        return my.phase == "move" and refused(second) or first
    end

    -- The item may have moved to near between the two requests.
    function act.fetch(req)
        local res, nowhere = fetch(req)
        if not nowhere then return res end
        if searches then res = send(req, my.again) end
        mcp.stat(res:hit() and my.stat_near or my.stat_miss, 1)
        return res
    end
    function act.change(req, cmd)
        local res, nowhere = change(req, cmd)
        if not (nowhere and searches) then return res end
        res = send(req, my.again)
        return has_changed(res, cmd) and settled(req, res) or res
    end
    function act.store(req)
        local res = send(req, my.near)
        if res:ok() then return settled(req, res) end
        -- A server that does not store a value, because it is too large, removes the item. Then far must not have it.
        if res:code() == SERVER_ERROR and responded(res) then send_instead("md", req, my.clear) end
        return res
    end
    function act.add(req, cmd)
        if searches then
            local found = send_instead("mg", req, my.far)
            if not found:ok() then return refused(found) end
            if found:hit() then return exists(req, cmd, found) end
        end
        local res = send(req, my.near)
        return has_changed(res) and settled(req, res) or res
    end
    -- far first: if it does not confirm, the client repeats a request that has changed nothing at near.
    function act.remove(req)
        local second = send(req, my.far)
        if not second:ok() then return refused(second) end
        local first = send(req, my.near)
        return first:ok() and first:code() == NOT_FOUND and second or first
    end

    -- The request has no N at first: if one place has an item, the other one must not create a second one. Servers
    -- ignore the flags L and P, one of which stands for N: the reply depends on the order of the flags.
    function act.create(req, cmd)
        local _, seconds = req:flag_token("N")
        local act_on = cmd == MG and fetch or change
        if not tonumber(seconds) then return (act_on(req, cmd)) end -- the server rejects it
        local quiet, ignored = req:has_flag("q"), req:has_flag("L") and "P" or "L"
        req:flag_replace("N", ignored, seconds)
        local res, nowhere = act_on(req, cmd)
        if not nowhere then return res end
        req:flag_replace(ignored, "N", seconds)
        if quiet then req:flag_add("q") end -- lost in the text when it is sent
        res = send(req, my.again)
        if cmd == MG then mcp.stat(my.stat_miss, 1) end
        return has_changed(res, cmd) and settled(req, res) or res
    end

    return function(req)
        if slot(req:key(), my.most) < my.least then return send(req, my.near) end -- the key does not move
        local cmd = req:command()
        return act[kind(req, cmd)](req, cmd)
    end
end

function route_scale_start(options, ctx, generator)
    local near, far, stat_near, stat_far = options.child_new, options.child_old, options.stat_new, options.stat_old
    if options.phase == "prepare" then near, far, stat_near, stat_far = far, near, stat_far, stat_near end
    local function mutator(word)
        return mcp.req_mutator_new({ t = "cmdset", cmd = word }, { t = "keycopy", idx = 1 },
            { t = "flagcopy", flag = "b", idx = 2 })
    end
    local my = {
        phase = options.phase,
        most = math.max(options.old, options.new), least = math.min(options.old, options.new),
        stat_near = stat_near, stat_far = stat_far, stat_miss = options.stat_miss, stat_refused = options.stat_refused,
        mutators = { md = mutator("md"), mg = mutator("mg") },
        -- A handle serves one time in each request.
        near = generator:new_handle(near), again = generator:new_handle(near),
        far = generator:new_handle(far), clear = generator:new_handle(far),
    }
    generator:ready({ a = my, n = ctx:label(), u = 1, f = scale })
end

register_route_handlers({ "scale" })
