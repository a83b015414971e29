-- Whether this plan's calls need no script now, without admitting one: {'admits_all', as of the function}
return {'admits_all', admits_all()}
