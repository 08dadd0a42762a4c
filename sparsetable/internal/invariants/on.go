//go:build invariants

package invariants

// Enabled says that checks are compiled in.
const Enabled = true
