package reader

// Check reports what Open would refuse of o itself. It opens no file.
func Check(o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if _, err := compile(&o); err != nil {
		return optionsErrorf("reader: %w", err)
	}
	return nil
}
