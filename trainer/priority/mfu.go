package priority

// mfu ranks rows by their accesses.
type mfu struct {
	entries
	accesses
}

// End implements List.
func (m *mfu) End(keys []uint64, rows Rows) {
	for i, key := range keys {
		n := m.in(i, rows)
		if n == 0 {
			continue
		}
		at := m.find(key)
		if at < 0 {
			if m.full() {
				m.dropHalf()
			}
			at = m.add(key)
		}
		m.score[at] += float32(n)
	}
}

// Bytes implements List.
func (m *mfu) Bytes() int64 { return m.entries.Bytes() + m.bytes() }
