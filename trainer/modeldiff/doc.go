// Package modeldiff compares the tables of two models: which rows were added and dropped, and how
// far others moved, by field.
//
//	Compare   opens both tables, has package tablediff compare them, and names what moved
//	keylog    reads logs for the sake of their keys
//
// A row has a hash as its key, which tells neither its field nor its value. So logs are read: those
// that the caller names, or those that the models were trained on. Their keys tell which field a
// row belongs to, and a second reading finds the values of the few rows that are listed. Logs that
// cannot be read are passed over with a warning, unless the caller has named them.
package modeldiff
