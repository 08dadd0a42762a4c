package plan

// RoundUp rounds n up to a multiple of unit.
func RoundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }
