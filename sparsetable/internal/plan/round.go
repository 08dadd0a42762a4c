package plan

// RoundUp is the next multiple of unit.
func RoundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }
