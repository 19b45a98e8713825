"""A plain PyTorch script on a cluster by the Core API: reports, checkpoints, pauses, resuming, in a loop of its own.

searcher: {name: single, metric: loss, max_length: {batches: 100}}
entrypoint: python3 plain_pytorch.py
"""
import determined as det
import torch
from determined import core


def main():
    info = det.get_cluster_info()
    hparams = info.trial.hparams if info else {}
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=hparams.get("lr", 0.1))
    x = torch.randn(256, 2, generator=torch.Generator().manual_seed(1))
    y, steps = x.sum(1, keepdim=True), 0
    with core.init() as context:
        latest = info.latest_checkpoint if info else None
        if latest is not None:
            with context.checkpoint.restore_path(latest) as path:
                state = torch.load(path / "state.pth")
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            steps = state["steps"]
        for operation in context.searcher.operations():
            length = operation.length if info else 100
            while steps < length:
                loss = torch.nn.functional.mse_loss(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps += 1
                pause = context.preempt.should_preempt()
                if steps % 25 == 0 or pause:
                    context.train.report_training_metrics(steps, {"loss": loss.item()})
                    with context.checkpoint.store_path({"steps_completed": steps}) as (path, _):
                        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "steps": steps}, path / "state.pth")
                if pause:
                    return
            with torch.no_grad():  # anew: a trial may resume with no step left
                loss = torch.nn.functional.mse_loss(model(x), y).item()
            context.train.report_validation_metrics(steps, {"loss": loss})
            operation.report_completed(loss)


if __name__ == "__main__":
    main()
