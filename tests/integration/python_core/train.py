"""A loop of its own: reports, and files for TensorBoard, which the context keeps by itself or when it is told."""
from determined import core, tensorboard

with core.init() as context:
    for op in context.searcher.operations():
        with tensorboard.open_writer(context.train.get_tensorboard_path()) as writer:
            for step in range(op.length):
                writer.add_scalar("mine", step, step)
            context.train.report_training_metrics(op.length, {"loss": 0.5})
            writer.add_scalar("late", 1, op.length)
        context.train.report_validation_metrics(op.length, {"error": 0.25})
        with context.checkpoint.store_path({"steps_completed": op.length}) as (path, _):
            (path / "weights").write_text("none")
        op.report_completed(0.25)

with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
    (context.train.get_tensorboard_path() / "notes.txt").write_text("noted")
    context.train.report_metrics("mine", 8, {"x": 1})
    context.train.upload_tensorboard_files(lambda path: path.suffix == ".txt", lambda path, rank: path.with_name(f"{rank}-{path.name}"))
