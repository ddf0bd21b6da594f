"""What a shell line does, told before it runs: its simple commands, which of them only read, which a rule covers."""
