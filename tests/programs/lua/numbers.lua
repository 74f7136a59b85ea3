-- Loops over integers and floats, arrays, and the mathematical library.
local rounds = tonumber(arg and arg[1]) or 1

local function sieve(limit)
  local composite, count = {}, 0
  for i = 2, limit do
    if not composite[i] then
      count = count + 1
      for j = i * i, limit, i do composite[j] = true end
    end
  end
  return count
end

local function multiply(a, b, n)
  local c = {}
  for i = 1, n do
    local row, from = {}, a[i]
    for j = 1, n do
      local sum = 0.0
      for k = 1, n do sum = sum + from[k] * b[k][j] end
      row[j] = sum
    end
    c[i] = row
  end
  return c
end

local n = 44
local a, b = {}, {}
for i = 1, n do
  a[i], b[i] = {}, {}
  for j = 1, n do
    a[i][j] = (i * j) % 7 / 8
    b[i][j] = (i + j) % 5 / 4
  end
end

local count, trace = 0, 0.0
for round = 1, rounds do
  count = count + sieve(30000 + round)
  local c = multiply(a, b, n)
  for i = 1, n do trace = trace + c[i][i] end
  for i = 1, 20000 do
    trace = trace + math.floor(math.sqrt(i)) % 3 + (i // 7) % 2 - (i & 5)
  end
end
print("numbers", count, string.format("%.3f", trace))
