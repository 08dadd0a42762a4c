// Package convert reads rows of any format and writes them in any other; on the
// way it joins, selects, sorts and splits them. Rows stay text: they are split into
// cells, but the cells are not parsed.
package convert
