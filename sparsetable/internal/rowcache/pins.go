package rowcache

// Hundreds of passes may hold the same hot rows if the passes are small and the
// queue before training is long. A row's state has room for maxPins pins; a map
// counts the pins beyond that, and hardly any row is ever in it.

// morePinsBytes is about how many bytes a row takes in the map.
const morePinsBytes = 32

// pinMore adds a pin to a row whose state holds no more.
func (c *Cache) pinMore(ref uint32) {
	c.sharing.Lock()
	defer c.sharing.Unlock()
	if c.mu.morePins == nil {
		c.mu.morePins = map[uint32]uint32{}
	}
	before := len(c.mu.morePins)
	c.mu.morePins[ref]++
	c.mu.bytes += int64(len(c.mu.morePins)-before) * morePinsBytes
}

// unpinMore takes back one of the pins that the row's state does not hold, and
// reports whether there was one.
func (c *Cache) unpinMore(ref uint32) bool {
	c.sharing.Lock()
	defer c.sharing.Unlock()
	n := c.mu.morePins[ref]
	switch n {
	case 0:
		return false
	case 1:
		delete(c.mu.morePins, ref)
		c.mu.bytes -= morePinsBytes
		if len(c.mu.morePins) == 0 {
			c.mu.morePins = nil // a map keeps its memory
		}
	default:
		c.mu.morePins[ref] = n - 1
	}
	return true
}
