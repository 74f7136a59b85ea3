-- Calls, closures, varargs, errors and coroutines.
local rounds = tonumber(arg and arg[1]) or 1

local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end

local function counter(step)
  local total = 0
  return function(...)
    total = (total + step + select("#", ...)) % 1000003
    return total
  end
end

local function walk(depth, visit)
  if depth == 0 then visit(1) return end
  walk(depth - 1, visit)
  visit(depth)
  walk(depth - 1, visit)
end

local sum = 0
for round = 1, rounds do
  sum = sum + fib(22)
  local count = counter(round)
  walk(11, function(depth) sum = (sum + count(depth, sum)) % 1000000007 end)
  local producer = coroutine.wrap(function()
    for i = 1, 4000 do coroutine.yield(i * round) end
  end)
  for _ = 1, 4000 do sum = (sum * 31 + producer()) % 1000000007 end
  for i = 1, 1500 do
    local ok, problem = pcall(function()
      if i % 3 == 0 then error({ code = i }) end
      return i
    end)
    sum = (sum + (ok and problem or problem.code * 2)) % 1000000007
  end
end
print("calls", sum)
