-- Strings: patterns, formats, buffers, sorting and hashing.
local rounds = tonumber(arg and arg[1]) or 1

local words = {}
local seed = 17
local function draw(limit)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed % limit
end
for i = 1, 1500 do
  local letters = {}
  for j = 1, 3 + draw(9) do letters[j] = string.char(97 + draw(26)) end
  words[i] = table.concat(letters)
end

local total = 0
for round = 1, rounds do
  local text = table.concat(words, " ")
  local counts = {}
  for word in text:gmatch("%a+") do
    local head = word:sub(1, 2)
    counts[head] = (counts[head] or 0) + #word
  end
  local turned = text:gsub("([aeiou])(%a)", "%2%1"):upper()
  total = total + (turned:find("QUX", 1, true) or 0) + #turned:gsub("%s+", "")
  local sorted = {}
  for i, word in ipairs(words) do sorted[i] = word:reverse() end
  table.sort(sorted, function(x, y)
    if #x ~= #y then return #x < #y end
    return x < y
  end)
  for i = 1, #sorted, 50 do total = total + sorted[i]:byte() end
  local parts = {}
  for i = 1, 1500 do parts[#parts + 1] = string.format("%05d:%-6s|%x;", i, words[i]:sub(1, 4), i * round) end
  total = total + #table.concat(parts)
  for _, value in pairs(counts) do total = total + value end
end
print("strings", total)
