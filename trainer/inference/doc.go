// Package inference uses models without changing them. Load opens a model from its model directory
// alone; the model then evaluates and predicts. Inspect reads all of a model and describes it. A
// Runner measures a model, including one that is being trained. The stages are those of training,
// with rows looked up instead of created.
package inference
