-- Tables as objects, metatables, and the garbage collector.
local rounds = tonumber(arg and arg[1]) or 1

local Shape = {}
Shape.__index = Shape
function Shape.new(w, h) return setmetatable({ w = w, h = h }, Shape) end
function Shape:area() return self.w * self.h end
Shape.__add = function(x, y) return Shape.new(x.w + y.w, x.h + y.h) end
Shape.__lt = function(x, y) return x:area() < y:area() end

local Square = setmetatable({}, { __index = Shape })
Square.__index = Square
function Square.new(side) return setmetatable({ w = side, h = side }, Square) end

local function tree(depth)
  if depth == 0 then return { value = 1 } end
  return { left = tree(depth - 1), right = tree(depth - 1), value = depth }
end
local function sum_of(node)
  if not node then return 0 end
  return node.value + sum_of(node.left) + sum_of(node.right)
end

local total = 0
for round = 1, rounds do
  local largest = Shape.new(0, 0)
  for i = 1, 3000 do
    local shape = i % 2 == 0 and Shape.new(i % 17, i % 13) or Square.new(i % 11)
    local both = Shape.new(1, 1) + shape
    if largest < both then largest = both end
    total = total + shape:area()
  end
  total = total + largest:area() + sum_of(tree(11))
  local weak = setmetatable({}, { __mode = "k" })
  for i = 1, 300 do weak[{}] = i end
  if round % 4 == 0 then collectgarbage() end
end
print("objects", total)
