-- The state of the plan's breakers, without admitting a call: {'all_closed', as of the function}
return {'all_closed', all_closed()}
