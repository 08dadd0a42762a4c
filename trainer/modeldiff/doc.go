// Package modeldiff compares the tables of two models: which rows were added and dropped, and how
// far others moved, by field.
//
//	Compare   opens both tables, compares them by package tablediff, and names rows that moved
//	keylog    reads logs for their keys
//
// The key of a row is a hash, which tells neither its field nor its value. So logs are read, either
// those that the caller names or those that the models were trained on. Their keys tell which field
// a row belongs to, and a second reading finds the values of the few rows that are listed. Logs
// that cannot be read are skipped with a warning, unless the caller has named them.
package modeldiff
