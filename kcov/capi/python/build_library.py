"""Builds libkcov and puts it into the wheel."""

import json
import pathlib
import subprocess
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuildLibrary(BuildHookInterface):
    def initialize(self, version, build_data):
        crate = pathlib.Path(self.root).parent / "libkcov"
        command = ["cargo", "build", "--release", "--locked", "--message-format=json"]
        built = subprocess.run(command, cwd=crate, check=True, stdout=subprocess.PIPE, text=True)
        messages = map(json.loads, built.stdout.splitlines())
        files = [file for message in messages for file in message.get("filenames", [])]
        (library,) = [file for file in files if file.endswith("/libkcov.so")]
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["force_include"][library] = "kcov/libkcov.so"
