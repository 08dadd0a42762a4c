// Package convert reads rows of any format and writes them in any other; on the
// way it joins, selects, sorts and splits them. Rows stay text: nothing is parsed
// but what tells cells and rows apart.
package convert
