"""`movie bridge`: the compiled bridge between MOVie and the PyTorch that is installed."""

import typer

from movie.errors import InputError

app = typer.Typer(help="The compiled bridge between MOVie and the PyTorch that is installed.", no_args_is_help=True)


@app.command()
def build() -> None:
    """Compile the bridge for this PyTorch, in seconds: MOVie uses it from then on."""
    try:
        import torch  # noqa: PLC0415 - takes seconds
    except ImportError as error:
        raise InputError(f"PyTorch cannot be imported ({error}): install a CUDA build of it") from None
    from movie.torch.bridge import build_bridge  # noqa: PLC0415

    if torch.version.cuda is None:
        raise InputError(f"this PyTorch ({torch.__version__}) was built without CUDA: it needs no bridge")
    typer.echo(build_bridge(torch))
