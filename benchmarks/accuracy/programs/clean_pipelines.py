"""Input, output and bookkeeping around a model, which belong on the host: nothing to report."""

from __future__ import annotations

import tempfile

import numpy as np
import tensorflow as tf

from benchmarks.accuracy.program import Step, clean
from benchmarks.accuracy.programs.clean_layers import KL


def _through_dense(data: tf.data.Dataset) -> Step:
    """Each batch of ``data`` goes through a dense layer."""
    layer = KL.Dense(2)

    def step() -> None:
        for batch in data:
            layer(batch)

    return step


@clean("tf.data", ops=("MatMul",))
def image_pipeline() -> Step:
    """PNG bytes decoded, resized, flipped, scaled, batched, and a convolution."""
    pictures = [
        tf.io.encode_png(np.full((8, 8, 3), shade, np.uint8)).numpy() for shade in (10, 200)
    ]

    def prepare(data: tf.Tensor) -> tf.Tensor:
        image = tf.image.resize(tf.io.decode_png(data, channels=3), [4, 4])
        image = tf.image.random_flip_left_right(image / 255.0)
        return tf.reshape(tf.image.adjust_brightness(image, 0.1), [48])

    data = tf.data.Dataset.from_tensor_slices(pictures)
    return _through_dense(data.map(prepare, num_parallel_calls=2).batch(2).prefetch(1))


@clean("tf.data", ops=("MatMul",))
def text_pipeline() -> Step:
    """Lines split, hashed, looked up, padded, and embedded."""
    words = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64)), 0
    )
    table = KL.Embedding(4, 3)
    dense = KL.Dense(1)
    data = tf.data.Dataset.from_tensor_slices(["a b", "b a a"])
    data = data.map(lambda line: words.lookup(tf.strings.split(line))).padded_batch(2)

    def step() -> None:
        for ids in data:
            dense(table(ids))

    return step


@clean("tf.data", ops=("MatMul",))
def string_lookup_and_hashing() -> Step:
    """Feature columns of the present: lookup and hashing of strings, then a dense layer."""
    lookup = KL.StringLookup(vocabulary=["a", "b"], output_mode="one_hot")
    hashing = KL.Hashing(num_bins=4)
    dense = KL.Dense(1)

    def step() -> None:
        lookup_of = lookup(tf.constant(["a", "z"]))
        hashed = tf.one_hot(hashing(tf.constant(["x", "y"])), 4)
        dense(tf.concat([tf.cast(lookup_of, tf.float32), hashed], axis=1))

    return step


@clean("tf.data", ops=("MatMul",))
def shuffled_and_windowed() -> Step:
    """Shuffling, windows, interleaving, zipping, caching, take and skip."""
    numbers = tf.data.Dataset.range(12).map(lambda i: tf.cast(i, tf.float32))
    windows = numbers.window(3, drop_remainder=True).flat_map(lambda w: w.batch(3))
    data = tf.data.Dataset.zip((windows, windows.skip(1))).map(lambda a, b: a + b)
    return _through_dense(data.cache().shuffle(4).repeat(2).batch(2).take(2))


@clean("tf.data", ops=("MatMul",))
def generator_and_tfrecords() -> Step:
    """A Python generator and TFRecord files with parsed examples."""
    path = f"{tempfile.mkdtemp()}/data.tfrecord"
    with tf.io.TFRecordWriter(path) as writer:
        value = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0]))
        example = tf.train.Example(features=tf.train.Features(feature={"x": value}))
        writer.write(example.SerializeToString())
    spec = {"x": tf.io.FixedLenFeature([2], tf.float32)}
    read = tf.data.TFRecordDataset(path).map(lambda r: tf.io.parse_single_example(r, spec)["x"])
    made = tf.data.Dataset.from_generator(
        lambda: iter([np.ones(2, "f")]), output_signature=tf.TensorSpec([2], tf.float32)
    )
    return _through_dense(read.concatenate(made).batch(2))


@clean("tf.data", ops=("Conv2D",))
def augmentation_in_model() -> Step:
    """Rescaling, random flips and crops as layers of the model, in training."""
    model = tf.keras.Sequential(
        [KL.Rescaling(1 / 255.0), KL.RandomFlip(), KL.RandomCrop(6, 6), KL.Conv2D(2, 3)]
    )
    call = tf.function(lambda x: model(x, training=True))
    return lambda: call(tf.ones([2, 8, 8, 3]))


@clean("tf.data")
def normalization_adapted() -> Step:
    """A Normalization layer whose statistics are computed from data."""
    layer = KL.Normalization()
    layer.adapt(np.random.default_rng(0).random((8, 3)).astype("f"))
    return lambda: layer(tf.ones([2, 3]))


@clean("image ops", ops=("ResizeBilinear", "AdjustContrastv2"))
def image_ops_on_gpu() -> Step:
    """Colour, contrast, bilinear and nearest resizing, crops, all with GPU kernels."""

    @tf.function
    def step(x: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (
            tf.image.adjust_contrast(x, 2.0),
            tf.image.adjust_saturation(x, 0.5),
            tf.image.adjust_hue(x, 0.1),
            tf.image.resize(x, [4, 4]),
            tf.image.resize(x, [4, 4], method="nearest"),
            tf.image.rgb_to_grayscale(x),
            tf.image.crop_and_resize(x, tf.constant([[0.0, 0.0, 1.0, 1.0]]), [0], [3, 3]),
            tf.image.per_image_standardization(x),
            tf.image.ssim(x, x, 1.0, filter_size=3),
        )

    return lambda: step(tf.ones([1, 8, 8, 3]))


@clean("image ops")
def image_gradients_and_patches() -> Step:
    """Patches, Sobel edges, total variation and their gradients."""

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.image.total_variation(x))
            loss += tf.reduce_sum(tf.image.sobel_edges(x) ** 2)
            patches = tf.image.extract_patches(x, [1, 2, 2, 1], [1] * 4, [1] * 4, "SAME")
            loss += tf.reduce_sum(patches)
        return tape.gradient(loss, x)

    return lambda: step(tf.ones([1, 8, 8, 1]))


@clean("output", ops=("MatMul",))
def summaries() -> Step:
    """Values for TensorBoard, one of them computed when it is written, under a condition."""
    writer = tf.summary.create_file_writer(tempfile.mkdtemp())
    weight = tf.Variable(tf.ones([3, 3]))

    @tf.function
    def step(number: tf.Tensor) -> None:
        y = weight @ weight
        with writer.as_default(), tf.summary.record_if(number < 5):
            tf.summary.write("mean", tf.reduce_mean(y), step=number)
            # As the scalar and histogram summaries of TensorBoard do: TensorFlow opens the scope.
            tf.summary.write("buckets", lambda: tf.cast(y, tf.float64) / 9.0, step=number)
            tf.summary.write("words", tf.strings.as_string(tf.reduce_max(y)), step=number)

    return lambda: step(tf.constant(1, tf.int64))


@clean("output", ops=("MatMul",))
def summaries_in_callback() -> Step:
    """A callback that writes the weights after each epoch, eagerly."""
    model = tf.keras.Sequential([KL.Dense(2)])
    model.compile("sgd", "mse", jit_compile=False)
    writer = tf.summary.create_file_writer(tempfile.mkdtemp())

    class Board(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
            with writer.as_default():
                for number, weight in enumerate(model.get_weights()):
                    tf.summary.write(f"weight{number}", weight, step=epoch)
                tf.summary.write("loss", (logs or {})["loss"], step=epoch)
            writer.flush()

    x, y = np.ones((4, 3), "f"), np.ones((4, 2), "f")
    return lambda: model.fit(x, y, epochs=1, verbose=0, callbacks=[Board()])


@clean("output", ops=("MatMul",))
def printing_and_assertions() -> Step:
    """tf.print, tf.debugging's checks, tf.Assert and check_numerics."""

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        tf.debugging.assert_shapes([(x, ("N", 2))])
        tf.debugging.assert_greater(x, 0.0)
        tf.debugging.assert_rank(x, 2)
        tf.debugging.assert_all_finite(x, "x")
        tf.Assert(tf.reduce_all(x > 0.0), [x])
        y = tf.debugging.check_numerics(x @ x, "y")
        tf.print("mean", tf.reduce_mean(y), y)
        return y

    return lambda: step(tf.ones([2, 2]))


@clean("output", ops=("MatMul",))
def prints_eagerly() -> Step:
    """repr, numpy() and string formatting of tensors on the GPU."""

    def step() -> str:
        y = tf.ones([2, 2]) @ tf.ones([2, 2])
        tf.print(y, summarize=2)
        return f"{y} {y.numpy()} {float(y[0, 0])} {tf.strings.format('{}', y)}"

    return step


@clean("python functions", ops=("MatMul",))
def py_function_and_numpy_function() -> Step:
    """Python code in the middle of a graph, with TensorFlow ops inside."""

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        counted = tf.numpy_function(lambda v: v + np.float32(1), [x], tf.float32)
        doubled = tf.py_function(lambda v: tf.square(v) * 2.0, [x], tf.float32)
        counted.set_shape([2, 2])
        doubled.set_shape([2, 2])
        return counted @ doubled

    return lambda: step(tf.ones([2, 2]))


@clean("python functions", ops=("MatMul",))
def py_function_in_pipeline() -> Step:
    """py_function in a map of tf.data, as image loaders have it."""

    def load(number: tf.Tensor) -> tf.Tensor:
        return tf.cast(tf.fill([3], number), tf.float32) * 2.0

    data = tf.data.Dataset.range(4)
    data = data.map(lambda n: tf.py_function(load, [n], tf.float32))
    return _through_dense(data.map(lambda x: tf.ensure_shape(x, [3])).batch(2))


@clean("bookkeeping", ops=("MatMul",))
def shapes_counters_and_seeds() -> Step:
    """Dynamic shapes, counters and seeds are integers of rank 0 or 1; they may be anywhere."""
    counter = tf.Variable(0, dtype=tf.int32, trainable=False)

    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def step(x: tf.Tensor) -> tf.Tensor:
        counter.assign_add(1)
        size = tf.shape(x)
        flat = tf.reshape(x, [size[0] * size[1]])
        tiled = tf.tile(flat, [tf.minimum(size[0], 2)])
        return tf.reshape(tiled, [-1, size[1]]) @ tf.transpose(x)

    return lambda: step(tf.ones([2, 3]))


@clean("bookkeeping", ops=("OneHot", "MatMul"))
def labels_and_ids() -> Step:
    """Labels of rank 1, made one-hot; ids gathered from a table."""
    table = tf.Variable(tf.ones([5, 3]))

    @tf.function
    def step(labels: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
        logits = tf.gather(table, ids) @ tf.ones([3, 4])
        loss = tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(labels, 4), logits)
        right = tf.equal(tf.argmax(logits, 1, tf.int32), labels)
        return tf.reduce_mean(loss) + tf.reduce_mean(tf.cast(right, tf.float32))

    return lambda: step(tf.constant([0, 1]), tf.constant([2, 3]))


@clean("bookkeeping", counts=False)
def only_a_dataset() -> Step:
    """A dataset loop alone: something ran, and nothing of it counts."""
    data = tf.data.Dataset.range(4).map(lambda i: tf.cast(i, tf.float32) * 2.0).batch(2)
    return lambda: list(data)


@clean("bookkeeping", ops=("MatMul",))
def integer_arithmetic_of_ids() -> Step:
    """int32 ids of rank 2, shifted and compared, eagerly and in a function: the GPU kernels of
    these ops keep int32 in host memory, so that there is nowhere else for them to be."""

    def shift(ids: tf.Tensor) -> tf.Tensor:
        moved = (ids + 1) * 2 - ids
        return tf.cast(tf.equal(moved, 4), tf.float32) @ tf.ones([2, 2])

    in_function = tf.function(shift)
    return lambda: (shift(tf.constant([[1, 2], [3, 4]])), in_function(tf.ones([2, 2], tf.int32)))


@clean("strings", ops=("MatMul",))
def decode_and_model() -> Step:
    """CSV and JSON-like strings decoded to floats, then a model on them."""

    @tf.function
    def step(lines: tf.Tensor) -> tf.Tensor:
        columns = tf.io.decode_csv(lines, [[0.0], [0.0]])
        numbers = tf.strings.to_number(tf.constant(["1.0", "2.0"]))
        return tf.stack(columns, axis=1) @ tf.ones([2, 2]) + numbers

    return lambda: step(tf.constant(["1,2", "3,4"]))


@clean("custom loop", ops=("MatMul",))
def dataset_iterator_by_hand() -> Step:
    """iter(), next() and get_next inside a tf.function over an iterator."""
    data = tf.data.Dataset.from_tensor_slices(np.ones((8, 3), "f")).batch(2).repeat()
    iterator = iter(data)

    @tf.function
    def step(source: object) -> tf.Tensor:
        return next(source) @ tf.ones([3, 2])

    return lambda: (step(iterator), next(iterator) @ tf.ones([3, 2]))
