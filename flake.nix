{
  description = "Tenuto: a terminal coding agent whose sessions go on for ever and lose nothing";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      # Its dependencies come from PyPI by uv, into an environment in the user's cache: nixpkgs has not all of them.
      tenuto = pkgs: pkgs.writeShellApplication {
        name = "tenuto";
        runtimeInputs = [ pkgs.git pkgs.ripgrep pkgs.uv ] ++ pkgs.lib.optional pkgs.stdenv.isLinux pkgs.bubblewrap;
        text = ''
          exec uv tool run --python ${pkgs.python313}/bin/python3 --from ${self} tenuto "$@"
        '';
      };
    in
    {
      packages = each (pkgs: { default = tenuto pkgs; });
      apps = each (pkgs: { default = { type = "app"; program = "${tenuto pkgs}/bin/tenuto"; }; });
      devShells = each (pkgs: {
        default = pkgs.mkShell { packages = [ pkgs.python313 pkgs.uv pkgs.git pkgs.ripgrep pkgs.tmux ]; };
      });
    };
}
