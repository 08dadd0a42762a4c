//go:build invariants

package invariants

// Enabled says whether the checks are compiled in.
const Enabled = true
