package catalog

// DiskBytes returns the size of the catalog on disk.
func (c *Catalog) DiskBytes() (n int64, err error) {
	c.mu.Lock()
	defer c.unlock()
	if err := c.usableLocked(); err != nil {
		return 0, err
	}
	err = c.log.do(func() error {
		n = int64(c.mu.db.Metrics().DiskSpaceUsage())
		return nil
	})
	return n, err
}
