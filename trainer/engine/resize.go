package engine

// Resize returns a slice of length n, in the memory of s if that is large enough. Its contents are
// undefined.
func Resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}
