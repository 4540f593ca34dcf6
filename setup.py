"""Build the Cython kernels; everything else about the package is in pyproject.toml.

MOLDAU_SANITIZE=address builds them with AddressSanitizer (docs/sanitizer.md). MOLDAU_KERNELS=0
leaves them out: tools/bootstrap.py builds them in place, where a second build is quick.
"""

import os
import sys
from glob import glob
from itertools import count

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

WANTED = os.environ.get("MOLDAU_KERNELS") != "0"
SANITIZE = os.environ.get("MOLDAU_SANITIZE")
FLAGS = ["-fno-omit-frame-pointer", "-g", "-O1", f"-fsanitize={SANITIZE}"] if SANITIZE else ["-O3"]
WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-unused-function"]

extensions = [
    Extension(
        path.removeprefix("src/").removesuffix(".pyx").replace("/", "."),
        [path],
        depends=[*glob("src/moldau/_native/*.h"), *glob("src/moldau/_native/*.px[di]")],
        include_dirs=["src/moldau/_native"],
        extra_compile_args=[*FLAGS, *WARNINGS],
        extra_link_args=[f"-fsanitize={SANITIZE}"] if SANITIZE else [],
    )
    for path in sorted(glob("src/moldau/_native/*.pyx"))
    if WANTED
]


class KernelBuild(build_ext):
    """Says which kernel it compiles, and how many there are: it is silent for minutes otherwise."""

    begun = count(1)

    def build_extension(self, extension):
        """Compile one; several threads do."""
        name = extension.name.rpartition(".")[2]
        line = f"moldau: compiling kernel {next(self.begun)} of {len(self.extensions)}: {name}\n"
        sys.stdout.write(line)
        sys.stdout.flush()
        super().build_extension(extension)


setup(
    cmdclass={"build_ext": KernelBuild},
    ext_modules=cythonize(
        extensions,
        nthreads=0,
        compiler_directives={
            "language_level": "3",
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "freethreading_compatible": False,
        },
    ),
)
