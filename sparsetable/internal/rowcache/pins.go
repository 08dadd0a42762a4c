package rowcache

// Hundreds of passes may hold the same hot rows if the passes are small and the queue before
// training is long. A row's state has room for maxPins pins; a map, which is almost always empty,
// counts the pins beyond that.

// morePinsBytes is the approximate size of an entry of the map.
const morePinsBytes = 32

// pinMore adds a pin to a row whose state cannot hold more.
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

// unpinMore removes one of the pins that the row's state does not hold, and reports whether there
// was one.
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
			c.mu.morePins = nil // because a map never shrinks
		}
	default:
		c.mu.morePins[ref] = n - 1
	}
	return true
}
