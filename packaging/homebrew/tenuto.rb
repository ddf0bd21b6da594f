# The formula for a tap. `scripts/release` fills in version and checksum; `brew update-python-resources tenuto` writes the
# resources of its dependencies.
class Tenuto < Formula
  include Language::Python::Virtualenv

  desc "Terminal coding agent whose sessions go on for ever and lose nothing"
  homepage "https://pypi.org/project/tenuto/"
  url "https://files.pythonhosted.org/packages/source/t/tenuto/tenuto-0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "python@3.13"
  depends_on "ripgrep"

  def install
    virtualenv_install_with_resources
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tenuto --version")
    assert_match(/\S/, shell_output("#{bin}/tenuto -p hello --no-session --model offline/tenuto"))
  end
end
