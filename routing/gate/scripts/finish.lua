-- A call leaves its key and, when it ends, its policy's limits.
if call.left then leave(call.left, call.charges) end
if call.ends then release(plan.rules, call.sent, call.at, call.charges) end
return 1
