// Package inference uses models without changing them. Load opens a model from its model directory
// alone, which then evaluates and predicts; Inspect reads all of it and says what it holds. A
// Runner measures a model, also one that is being trained. The stages are those of training, with
// rows looked up instead of created.
package inference
